// The way to the server: requests with the key, errors as people can be told of them,
// and events that survive a lost connection.
import { t } from './texts.js';

const keyName = 'skald.key';
let key = sessionStorage.getItem(keyName) ?? localStorage.getItem(keyName) ?? '';

export function setKey(value, remember) {
  key = value;
  sessionStorage.setItem(keyName, value);
  if (remember) localStorage.setItem(keyName, value);
  else localStorage.removeItem(keyName);
}

// asker is called when the server wants a key; it resolves when there is a new one.
let asker = null;
let asking = null;
export function onKeyNeeded(f) { asker = f; }

// ApiError is an answer that is no success, or none at all (status 0).
export class ApiError extends Error {
  constructor(status, error, retryAfter) {
    super(error.message);
    this.status = status;
    this.code = error.code ?? '';
    this.problems = error.problems ?? [];
    this.retryAfter = retryAfter;
  }

  // forPeople says what happened.
  get forPeople() {
    if (this.status === 0) return t.errors.offline;
    const text = t.errors[this.code];
    if (text) return text(this.retryAfter);
    return this.status >= 500 ? t.errors.server(this.message) : this.message;
  }
}

// request asks the server and returns its response, a success.
export async function request(method, path, { body, headers = {}, signal } = {}) {
  for (let tries = 0; ; tries++) {
    const sent = { ...headers };
    if (key) sent.Authorization = `Bearer ${key}`;
    if (body !== undefined) sent['Content-Type'] = 'application/json';
    const used = key;
    let response;
    try {
      response = await fetch(new URL(path, document.baseURI), {
        method, headers: sent, signal, cache: 'no-store',
        body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, { message: error.message });
    }
    if (response.ok) return response;
    if (response.status === 401 && asker && tries < 5) {
      // Many requests may fail at once: one question for them all.
      if (used === key) await (asking ??= asker(used !== '').finally(() => { asking = null; }));
      continue;
    }
    let error = {};
    try {
      error = (await response.json()).error ?? {};
    } catch { /* no JSON: the status must do */ }
    throw new ApiError(response.status, { message: `${response.status} ${response.statusText}`, ...error },
      Number(response.headers.get('Retry-After')) || 0);
  }
}

export async function json(method, path, options) {
  const response = await request(method, path, options);
  return parse(await response.text());
}

// parse reads JSON without making floats of large whole numbers: a seed may have 64 bits,
// and is a text here.
export function parse(text) {
  return JSON.parse(text, (name, value, context) =>
    (typeof value === 'number' && !Number.isSafeInteger(value) && /^\d{16,}$/.test(context?.source ?? '') ? context.source : value));
}

const silence = 45_000; // the server sends a sign of life more often

// events calls onEvent for each server-sent event until signal ends it or onEvent
// returns false. A lost connection is made again from the last event on; onState tells
// of both.
export async function events(path, { signal, onEvent, onState }) {
  let last = '';
  let lost = false;
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 8000)) {
    const quiet = new AbortController();
    let timer = 0;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), silence);
    };
    try {
      alive();
      const response = await request('GET', path, {
        headers: { Accept: 'text/event-stream', ...(last && { 'Last-Event-ID': last }) },
        signal: AbortSignal.any([signal, quiet.signal]),
      });
      if (lost) onState('back');
      lost = false;
      for await (const event of parseEvents(response.body, alive)) {
        wait = 500;
        if (event.id) last = event.id;
        if (onEvent(event) === false) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) throw error;
      if (!lost) onState('lost');
      lost = true;
    } finally {
      clearTimeout(timer);
    }
    await new Promise((resolve) => { setTimeout(resolve, wait); });
  }
}

async function* parseEvents(stream, alive) {
  let text = '';
  for await (const piece of texts(stream)) {
    alive();
    text = (text + piece).replaceAll('\r\n', '\n');
    for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
      const event = { type: 'message', id: '', data: '' };
      for (const line of text.slice(0, end).split('\n')) {
        const colon = line.indexOf(':');
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
        if (name === 'event') event.type = value;
        if (name === 'id') event.id = value;
        if (name === 'data') event.data += (event.data && '\n') + value;
      }
      if (event.data) yield event;
    }
  }
}

async function* texts(stream) {
  const decoder = new TextDecoder();
  for await (const bytes of pieces(stream)) yield decoder.decode(bytes, { stream: true });
}

// pieces reads a stream; not every browser can loop over one itself.
export async function* pieces(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
