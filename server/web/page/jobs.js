// The songs: those the server keeps as jobs, or, on a server without jobs, those that
// were made since the page was opened.
import { ApiError, events, json, parse, pieces, request } from './api.js';
import { encode } from './draft.js';

const path = 'v1/music/jobs';
export const ended = (job) => job.status === 'done' || job.status === 'failed' || job.status === 'cancelled';

// Jobs is an EventTarget: "change" when a song or the list changes, "connection" with
// detail lost or back.
export class Jobs extends EventTarget {
  #jobs = new Map();
  #watched = null;
  #stopWatching = null;
  #timer = 0;
  more = false; // the server has older ones
  kept = true; // the server keeps jobs

  // list has the newest first.
  get list() { return [...this.#jobs.values()].sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : -1)); }

  get(id) { return this.#jobs.get(id); }

  #put(job) {
    const before = this.#jobs.get(job.id);
    this.#jobs.set(job.id, { ...before, ...job, eta_seconds: job.eta_seconds, error: job.error, position: job.position });
    this.dispatchEvent(new CustomEvent('change', { detail: job.id }));
  }

  // refresh reads the newest songs, and goes on doing so while any is under way.
  async refresh() {
    clearTimeout(this.#timer);
    if (!this.kept) return;
    try {
      const page = await json('GET', `${path}?limit=50`);
      const oldest = page.data.at(-1);
      // Songs that were deleted elsewhere go; pages that were read before stay.
      for (const job of this.#jobs.values()) {
        const inPage = !oldest || !page.has_more || job.created_at > oldest.created_at;
        if (inPage && !page.data.some((j) => j.id === job.id)) this.#jobs.delete(job.id);
      }
      if (this.#jobs.size <= page.data.length) this.more = page.has_more;
      for (const job of page.data) if (job.id !== this.#watched || ended(job)) this.#put(job);
      this.dispatchEvent(new CustomEvent('change', { detail: '' }));
    } catch (error) {
      if (error.status === 404) {
        this.kept = false;
        this.dispatchEvent(new CustomEvent('change', { detail: '' }));
        return;
      }
    }
    const busy = this.list.some((job) => !ended(job));
    this.#timer = setTimeout(() => this.refresh(), busy ? 4000 : 20_000);
  }

  async older() {
    const last = this.list.at(-1);
    const page = await json('GET', `${path}?limit=50&after=${encodeURIComponent(last.id)}`);
    this.more = page.has_more;
    for (const job of page.data) this.#put(job);
  }

  // create asks for a song and returns its id. Sent twice, it is made once.
  async create(body) {
    if (!this.kept) return this.#makeHere(body);
    const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
    for (let tries = 0; ; tries++) {
      try {
        const job = await json('POST', path, { body: encode(body), headers: { 'Idempotency-Key': key } });
        this.#put(job);
        this.refresh();
        return job.id;
      } catch (error) {
        if (error.status === 404 && error.code !== 'model_not_found') {
          this.kept = false;
          return this.#makeHere(body);
        }
        if (error.status !== 0 || tries >= 2) throw error;
        await new Promise((resolve) => { setTimeout(resolve, 400); });
      }
    }
  }

  // watch follows one song until another is watched.
  watch(id) {
    if (this.#watched === id) return;
    this.#stopWatching?.abort();
    this.#watched = id;
    const job = this.#jobs.get(id);
    if (!this.kept || !id) return;
    if (!job?.request) json('GET', `${path}/${id}`).then((j) => this.#put(j), () => {});
    if (job && ended(job)) return;
    const stop = this.#stopWatching = new AbortController();
    events(`${path}/${id}/events`, {
      signal: stop.signal,
      onState: (state) => this.dispatchEvent(new CustomEvent('connection', { detail: state })),
      onEvent: (event) => {
        if (event.type === 'deleted') {
          this.#forget(id);
          return false;
        }
        const now = parse(event.data);
        this.#put(now);
        if (!ended(now)) return true;
        this.refresh();
        return false;
      },
    }).catch((error) => {
      if (error.status === 404) this.#forget(id);
    });
  }

  #forget(id) {
    this.#jobs.delete(id);
    this.dispatchEvent(new CustomEvent('change', { detail: id }));
  }

  async cancel(id) {
    const job = this.#jobs.get(id);
    if (job?.stop) job.stop.abort();
    else this.#put(await json('POST', `${path}/${id}/cancel`));
  }

  async finish(id) { this.#put({ ...await json('POST', `${path}/${id}/finish`), finishing: true }); }

  async remove(id) {
    if (this.kept) await request('DELETE', `${path}/${id}`);
    this.#forget(id);
  }

  // audio is the file of a finished song.
  async audio(id, format, signal) {
    const job = this.#jobs.get(id);
    if (job?.pcm) return wav(job.pcm, job.sample_rate);
    return (await request('GET', `${path}/${id}/audio?format=${format}`, { signal })).blob();
  }

  // more PCM of a running song, from a byte on: {bytes, rate}, or null when there is none.
  async pcm(id, from, signal) {
    const job = this.#jobs.get(id);
    if (job?.pcm) return { bytes: (await new Blob(job.pcm).arrayBuffer()).slice(from), rate: job.sample_rate };
    try {
      const response = await request('GET', `${path}/${id}/audio?format=pcm`, { headers: { Range: `bytes=${from}-` }, signal });
      let bytes = await response.arrayBuffer();
      if (response.status === 200) bytes = bytes.slice(from);
      return { bytes: bytes.slice(0, bytes.byteLength - bytes.byteLength % 4), rate: Number(response.headers.get('Skald-Sample-Rate')) };
    } catch (error) {
      if (error.status === 416 || error.status === 409) return null;
      throw error;
    }
  }

  // makeHere makes a song with a server that keeps none: it is streamed into the page.
  async #makeHere(body) {
    const stop = new AbortController();
    const { response_format: _, ...asked } = body;
    const response = await request('POST', 'v1/audio/speech', {
      body: encode({ ...asked, response_format: 'pcm', stream: true }), signal: stop.signal,
    });
    const id = `here_${Date.now()}`;
    const rate = Number(response.headers.get('Skald-Sample-Rate'));
    const job = {
      id, stop, status: 'running', stage: 'flow', created_at: Date.now() / 1000, request: parse(encode(asked)), sample_rate: rate,
      percent: 0, audio_seconds: 0, warnings: (response.headers.get('Skald-Warning') ?? '').split(', ').filter(Boolean), timings: [], pcm: [],
    };
    this.#put(job);
    (async () => {
      let bytes = 0;
      try {
        for await (const piece of pieces(response.body)) {
          job.pcm.push(piece);
          bytes += piece.length;
          this.#put({ ...job, audio_seconds: bytes / 4 / rate, percent: Math.min(99, bytes / 4 / rate / asked.audio_duration * 100) });
        }
        this.#put({ ...job, status: 'done', percent: 100, audio_seconds: bytes / 4 / rate });
      } catch {
        this.#put({ ...job, status: stop.signal.aborted ? 'cancelled' : 'failed', audio_seconds: bytes / 4 / rate, error: { message: new ApiError(0, {}).forPeople } });
      }
    })();
    return id;
  }
}

function wav(pieces, rate) {
  const size = pieces.reduce((n, p) => n + p.length, 0);
  const head = new DataView(new ArrayBuffer(44));
  const put = (at, text) => [...text].forEach((c, i) => head.setUint8(at + i, c.charCodeAt(0)));
  put(0, 'RIFF'); put(8, 'WAVEfmt '); put(36, 'data');
  head.setUint32(4, 36 + size, true); head.setUint32(16, 16, true);
  head.setUint16(20, 1, true); head.setUint16(22, 2, true); head.setUint32(24, rate, true);
  head.setUint32(28, rate * 4, true); head.setUint16(32, 4, true); head.setUint16(34, 16, true);
  head.setUint32(40, size, true);
  return new Blob([head, ...pieces], { type: 'audio/wav' });
}

// titleOf names a song: by its first sung line, or by how it should sound.
export function titleOf(job, fallback) {
  const input = job.request?.input ?? '';
  const line = input.split('\n').map((l) => l.replace(/\[[^\]]*\]/g, '').trim()).find(Boolean);
  const sound = (job.request?.instructions ?? '').replace(/^(Global Metadata|Vocal Details|Arrangement)$/gim, '').trim().split(/[\n.]/)[0];
  const text = line || sound || fallback;
  return text.length > 60 ? `${text.slice(0, 57).trimEnd()}…` : text;
}

// fileName is a title fit for a file.
export function fileName(job, fallback) {
  const plain = titleOf(job, fallback).toLowerCase().normalize('NFKD').replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '');
  return `${plain || 'song'}-${String(job.request?.seed ?? 0)}`;
}
