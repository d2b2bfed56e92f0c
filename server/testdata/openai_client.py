"""Drives a server with OpenAI's own client, as its users would.

The address is in SKALD_TEST_URL, with /v1; the key in SKALD_TEST_KEY. The server serves
the built-in model and answers to the alias tts-1.
"""

import base64
import io
import json
import os
import tempfile
import unittest
import wave

import openai

URL = os.environ["SKALD_TEST_URL"]
KEY = os.environ["SKALD_TEST_KEY"]
LYRICS = "[verse]\nla la la"
TWO_FRAMES = {"audio_duration": 0.1}  # 3,072 samples per channel


def samples(file):
    with wave.open(io.BytesIO(file)) as w:
        return w.readframes(w.getnframes())


class OpenAIClient(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=60)
        self.addCleanup(self.client.close)

    def sing(self, **changes):
        request = dict(model="tts-1", voice="alloy", input=LYRICS, instructions="calm", response_format="wav", extra_body=TWO_FRAMES)
        return self.client.audio.speech.create(**(request | changes))

    def refused(self, error, **changes):
        with self.assertRaises(error) as caught:
            self.sing(**changes)
        return caught.exception

    def test_models(self):
        models = list(self.client.models.list())
        self.assertEqual(len(models), 1)
        self.assertEqual(models[0].object, "model")
        self.assertEqual(models[0].task, "music")
        for name in (models[0].id, "tts-1"):
            self.assertEqual(self.client.models.retrieve(name).id, models[0].id)

    def test_wav(self):
        reply = self.sing()
        with wave.open(io.BytesIO(reply.content)) as w:
            self.assertEqual((w.getframerate(), w.getnchannels(), w.getsampwidth(), w.getnframes()), (44100, 2, 2, 3072))

    def test_pcm_is_the_same_song(self):
        self.assertEqual(self.sing(response_format="pcm").content, samples(self.sing().content))

    def test_all_that_the_client_can_say(self):
        reply = self.sing(speed=1.0, stream_format="audio", extra_body={"duration": 0.1, "seed": 2**64 - 1, "steps": 2})
        self.assertEqual(len(samples(reply.content)), 12288)
        self.assertEqual(reply.response.headers["skald-seed"], str(2**64 - 1))

    def test_headers(self):
        reply = self.client.audio.speech.with_raw_response.create(
            model="tts-1", voice="nova", input=LYRICS, instructions="calm", response_format="wav", extra_body=TWO_FRAMES)
        self.assertEqual(reply.headers["content-type"], "audio/wav")
        self.assertEqual(reply.headers["skald-frames"], "2")
        self.assertIn("demonstration", reply.headers["skald-warning"])
        self.assertTrue(reply.request_id)

    def test_to_a_file(self):
        request = dict(model="tts-1", voice="alloy", input=LYRICS, instructions="calm", response_format="wav", extra_body=TWO_FRAMES)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "song.wav")
            with self.client.audio.speech.with_streaming_response.create(**request) as reply:
                reply.stream_to_file(path)
            with open(path, "rb") as f:
                self.assertEqual(len(samples(f.read())), 12288)

    def test_every_format(self):
        begins = {"wav": b"RIFF", "flac": b"fLaC", "mp3": b"ID3", "opus": b"OggS"}
        for name, magic in begins.items():
            with self.subTest(name):
                self.assertTrue(self.sing(response_format=name).content.startswith(magic))

    def test_stream(self):
        request = dict(model="tts-1", voice="alloy", input=LYRICS, instructions="calm", response_format="pcm")
        with self.client.audio.speech.with_streaming_response.create(**request, extra_body=TWO_FRAMES | {"stream": True}) as reply:
            self.assertEqual(b"".join(reply.iter_bytes()), self.sing(response_format="pcm").content)

    def test_events(self):
        request = dict(model="tts-1", voice="alloy", input=LYRICS, instructions="calm", response_format="pcm", stream_format="sse")
        audio, last = b"", None
        with self.client.audio.speech.with_streaming_response.create(**request, extra_body=TWO_FRAMES) as reply:
            self.assertEqual(reply.headers["content-type"], "text/event-stream")
            for line in reply.iter_lines():
                if line:
                    last = json.loads(line.removeprefix("data: "))
                    audio += base64.b64decode(last.get("audio", ""))
        self.assertEqual(audio, self.sing(response_format="pcm").content)
        self.assertEqual((last["type"], last["usage"]["output_tokens"]), ("speech.audio.done", 2))

    def test_events_as_the_client_reads_them(self):
        path = "/audio/speech"
        body = dict(input=LYRICS, instructions="calm", stream_format="sse") | TWO_FRAMES
        stream = self.client.post(path, body=body, cast_to=dict, stream=True, stream_cls=openai.Stream[dict])
        self.assertEqual([e["type"] for e in stream], ["speech.audio.delta", "speech.audio.done"])

    def test_bad_requests(self):
        e = self.refused(openai.BadRequestError, extra_body={"audio_duration_s": 0.1, "seed": -1})
        self.assertEqual([p["pointer"] for p in e.body["problems"]], ["/audio_duration_s", "/seed"])
        self.assertEqual((e.type, e.param, e.code), ("invalid_request_error", "audio_duration_s", "unknown_parameter"))
        self.assertIn("did you mean", e.message)
        for changes in (
            dict(response_format="aac"), dict(stream_format="sse", extra_body={"stream": False}), dict(speed=2),
            dict(voice="somebody"), dict(voice={"id": "voice_1"}), dict(input=" "), dict(instructions=""),
            dict(extra_query={"stream": "true"}),
        ):
            with self.subTest(changes):
                self.refused(openai.BadRequestError, **changes)

    def test_unknown_model(self):
        self.assertEqual(self.refused(openai.NotFoundError, model="tts-2").code, "model_not_found")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("tts-2")

    def test_wrong_key(self):
        self.client = self.client.with_options(api_key="wrong")
        self.assertEqual(self.refused(openai.AuthenticationError).code, "invalid_api_key")

    def test_unknown_route(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model="tts-1", input="la")

    def test_leaving(self):
        self.client = self.client.with_options(timeout=0.3)
        self.refused(openai.APITimeoutError, extra_body={"audio_duration": 360, "steps": 200})
        self.client = self.client.with_options(timeout=60)
        self.assertEqual(len(samples(self.sing().content)), 12288)


if __name__ == "__main__":
    unittest.main(verbosity=2)
