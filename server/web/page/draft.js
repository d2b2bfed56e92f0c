// The draft: what the form holds, kept in this browser, and the request that it makes.
import { t } from './texts.js';

const name = 'skald.draft';

// model holds what the server says of its model; the form reads limits and defaults here.
export const defaults = () => ({
  mode: 'blocks',
  blocks: { global: '', vocal: '', arrangement: '' },
  free: '',
  lyrics: '',
  instrumental: false,
  seconds: 60,
  seed: String(Math.floor(Math.random() * 1e6)),
  locked: false,
  steps: '',
  guidance: '',
  format: 'wav',
  along: true,
});

export function load() {
  try {
    return merge(JSON.parse(localStorage.getItem(name) ?? '{}'));
  } catch {
    return defaults();
  }
}

export function keep(draft) {
  try {
    localStorage.setItem(name, JSON.stringify(draft));
  } catch { /* a browser that keeps nothing */ }
}

function merge(kept) {
  const draft = defaults();
  for (const [field, value] of Object.entries(kept ?? {})) {
    if (typeof value === typeof draft[field]) draft[field] = field === 'blocks' ? { ...draft.blocks, ...value } : value;
  }
  return draft;
}

// caption joins the three parts, each under its name, or is the free text.
export function caption(draft) {
  if (draft.mode === 'free') return draft.free;
  return Object.entries(t.blockNames)
    .filter(([part]) => draft.blocks[part].trim())
    .map(([part, title]) => `${title}\n${draft.blocks[part].trim()}`)
    .join('\n\n');
}

// split finds the three parts in a caption; null when it is not written so.
function split(text) {
  const blocks = { global: '', vocal: '', arrangement: '' };
  let at = null;
  for (const line of text.split('\n')) {
    const bare = line.replace(/^#+\s*/, '').replace(/:\s*$/, '').trim().toLowerCase();
    const part = Object.keys(t.blockNames).find((p) => t.blockNames[p].toLowerCase() === bare);
    if (part) at = part;
    else if (!at && line.trim()) return null;
    else if (at) blocks[at] += `${line}\n`;
  }
  if (!at) return null;
  for (const part of Object.keys(blocks)) blocks[part] = blocks[part].trim();
  return blocks;
}

// request is the body that the draft asks with.
export function request(draft) {
  const body = {
    input: draft.lyrics,
    instructions: caption(draft),
    audio_duration: Number(draft.seconds),
    seed: seedOf(draft.seed),
    response_format: draft.format,
  };
  if (draft.instrumental) body.instrumental = true;
  if (!body.input.trim() && draft.instrumental) delete body.input;
  if (!body.instructions.trim()) delete body.instructions;
  if (String(draft.steps).trim() !== '') body.num_inference_steps = Number(draft.steps);
  if (String(draft.guidance).trim() !== '') body.guidance_scale = Number(draft.guidance);
  return body;
}

// seedOf keeps a whole number of up to 64 bits exact.
function seedOf(text) {
  const clean = String(text).trim();
  if (/^\d+$/.test(clean) && !Number.isSafeInteger(Number(clean))) return new Whole(clean);
  return clean === '' ? 0 : /^\d+$/.test(clean) ? Number(clean) : clean;
}

class Whole {
  constructor(text) { this.text = text; }
}

// encode writes JSON, seeds of 64 bits included.
export function encode(body, indent) {
  const marks = new Map();
  const text = JSON.stringify(body, (_, value) => {
    if (!(value instanceof Whole)) return value;
    const mark = `whole-${marks.size}-${Math.random()}`;
    marks.set(JSON.stringify(mark), value.text.replace(/^0+(?=\d)/, ''));
    return mark;
  }, indent);
  let out = text;
  for (const [mark, digits] of marks) out = out.replace(mark, digits);
  return out;
}

// names of a request's fields, and those that are the form's.
const aliases = {
  lyrics: 'input', description: 'instructions', prompt: 'instructions', caption: 'instructions',
  duration: 'audio_duration', duration_seconds: 'audio_duration', steps: 'num_inference_steps',
};
const silent = new Set(['model', 'max_new_tokens', 'sample_rate', 'voice', 'speed', 'stream', 'stream_format', 'prompt_mode']);

// fromRequest makes a draft of a request, as it stands in a file or in a past song, and
// names the fields it has no place for.
export function fromRequest(body, before) {
  const draft = { ...defaults(), format: before.format, along: before.along, locked: true, seconds: before.seconds };
  const unknown = [];
  for (const [given, value] of Object.entries(body)) {
    const field = aliases[given] ?? given;
    if (value === null) continue;
    if (field === 'input') draft.lyrics = String(value);
    else if (field === 'instructions') {
      const blocks = split(String(value));
      draft.mode = blocks ? 'blocks' : 'free';
      if (blocks) draft.blocks = blocks;
      else draft.free = String(value);
    } else if (field === 'audio_duration') draft.seconds = Number(value);
    else if (field === 'seed') draft.seed = String(value);
    else if (field === 'num_inference_steps') draft.steps = String(value);
    else if (field === 'guidance_scale') draft.guidance = String(value);
    else if (field === 'response_format') draft.format = String(value);
    else if (field === 'instrumental') draft.instrumental = value === true;
    else if (!silent.has(field) || (field === 'prompt_mode' && value !== 'friendly')) unknown.push(given);
  }
  return { draft, unknown };
}

// shareable is the request of a song as a file holds it: what the server filled in by
// itself is left out where it says the same twice.
export function shareable(request) {
  const keep = ['input', 'instructions', 'audio_duration', 'seed', 'num_inference_steps', 'guidance_scale', 'response_format', 'sample_rate', 'instrumental', 'prompt_mode'];
  const body = {};
  for (const field of keep) if (request[field] !== undefined && request[field] !== '') body[field] = request[field];
  if (typeof body.seed === 'string') body.seed = seedOf(body.seed);
  if (body.instrumental === false) delete body.instrumental;
  return body;
}
