// The form: what the song should be.
import { announce, h, icon, replace, save, setText } from './dom.js';
import { ApiError, json, parse } from './api.js';
import * as drafts from './draft.js';
import { examples } from './examples.js';
import { lyricsEditor } from './lyrics.js';
import { t } from './texts.js';

export class WritePanel {
  #draft = drafts.load();
  #former = null; // the draft before an example or a file took its place
  #model = null;
  #send;
  #fields = {};
  #check = 0;
  #asked = null;

  // send(request, along) makes the song.
  constructor(send) {
    this.#send = send;
    this.element = h('section', { id: 'write', class: 'card', 'aria-labelledby': 'write-title', tabindex: '-1' },
      h('h2', { id: 'write-title' }, t.write), this.#form());
    this.#show();
  }

  // setModel brings the limits and defaults of what is served.
  setModel(model) {
    this.#model = model;
    const f = this.#fields;
    f.seconds.max = model.limits.max_audio_duration;
    setText(this.element.querySelector('#audio_duration-hint'), t.lengthHint(model.limits.max_audio_duration));
    f.steps.placeholder = model.defaults.num_inference_steps;
    f.guidance.placeholder = model.defaults.guidance_scale;
    replace(f.format, model.response_formats.map((name) => h('option', { value: name }, name)));
    if (!model.response_formats.includes(this.#draft.format)) this.#draft.format = model.response_formats[0];
    f.format.value = this.#draft.format;
    this.#checkSoon();
  }

  // take puts a past or opened request into the form.
  take(request) {
    const { draft, unknown } = drafts.fromRequest(request, this.#draft);
    this.#former = this.#draft;
    this.#draft = draft;
    this.#changed();
    this.#show();
    this.#note(unknown.length ? t.fileUnknown(unknown.join(', ')) : t.fileOpened, true);
  }

  #form() {
    const f = this.#fields;
    const area = (name, rows, [label, hint, example], change) => {
      f[name] = h('textarea', { id: name, rows, placeholder: example, 'aria-describedby': `${name}-hint`, oninput: (e) => { change(e.target.value); this.#changed(); } });
      return h('div', { class: 'field' }, h('label', { for: name }, label), h('small', { class: 'hint', id: `${name}-hint` }, hint), f[name]);
    };
    const input = (name, field, label, hint, properties, after) => {
      f[name] = h('input', { id: field, 'aria-describedby': `${field}-hint`, oninput: (e) => { this.#draft[name] = e.target.value; this.#changed(); }, ...properties });
      return h('div', { class: 'field', 'data-field': field }, h('label', { for: field }, label),
        h('div', { class: 'with' }, f[name], after), h('small', { class: 'hint', id: `${field}-hint` }, hint));
    };
    const mode = (value, label) => h('label', { class: 'choice' },
      f[`mode-${value}`] = h('input', { type: 'radio', name: 'mode', value, onchange: () => this.#mode(value) }), h('span', null, label));
    const tick = (name, label, hint, change) => h('label', { class: 'tick' },
      f[name] = h('input', { type: 'checkbox', onchange: (e) => { this.#draft[name] = e.target.checked; change?.(e.target.checked); this.#changed(); } }),
      h('span', null, label, hint && h('small', { class: 'hint' }, hint)));

    f.examples = h('select', { id: 'examples', onchange: (e) => this.#example(e.target) },
      h('option', { value: '' }, t.exampleNone), examples.map((x, i) => h('option', { value: i }, x.name)));
    f.note = h('p', { class: 'note', role: 'status' });
    f.blocks = h('div', { class: 'blocks' }, Object.entries(t.blocks).map(([part, texts]) =>
      area(part, part === 'arrangement' ? 4 : 3, texts, (value) => { this.#draft.blocks[part] = value; })));
    f.freeBox = h('div', null, area('free', 7, [t.free, t.freeHint, t.blocks.global[2]], (value) => { this.#draft.free = value; }));
    f.lyrics = lyricsEditor((value) => { this.#draft.lyrics = value; this.#changed(); });
    f.meter = h('div', { class: 'meter' }, h('meter', { min: '0', max: '1', value: '0', 'aria-label': t.meterOff }), h('p', null, t.meterOff));
    f.errors = h('div', { class: 'errors', role: 'alert', tabindex: '-1', hidden: true });
    f.start = h('button', { type: 'submit', class: 'primary' }, t.start);
    f.file = h('input', { type: 'file', accept: '.json,application/json', hidden: true, onchange: (e) => this.#open(e.target) });

    return h('form', { novalidate: true, onsubmit: (e) => { e.preventDefault(); this.#submit(); } },
      h('div', { class: 'field' }, h('label', { for: 'examples' }, t.examples), f.examples, f.note),
      h('fieldset', { 'data-field': 'instructions' }, h('legend', null, t.describe),
        h('div', { class: 'choices', role: 'radiogroup', 'aria-label': t.modeLabel }, mode('blocks', t.modeBlocks), mode('free', t.modeFree)),
        f.blocks, f.freeBox),
      f.lyrics.element,
      tick('instrumental', t.instrumental, '', (yes) => f.lyrics.instrumental(yes)),
      f.meter,
      h('div', { class: 'row' },
        input('seconds', 'audio_duration', t.length, '', { type: 'number', min: '0.04', step: 'any', inputmode: 'decimal' }, h('span', { class: 'unit' }, t.lengthUnit)),
        input('seed', 'seed', t.seed, t.seedHint, { type: 'text', inputmode: 'numeric', autocomplete: 'off' },
          h('button', { type: 'button', class: 'round', 'aria-label': t.dice, title: t.dice, onclick: () => this.#dice() }, icon('dice')))),
      tick('locked', t.lock, t.lockHint),
      h('details', null, h('summary', null, t.more),
        h('div', { class: 'row' },
          input('steps', 'num_inference_steps', t.steps, t.stepsHint, { type: 'number', min: '1', max: '200', step: '1' }),
          input('guidance', 'guidance_scale', t.guidance, t.guidanceHint, { type: 'number', min: '0', max: '20', step: 'any' })),
        h('div', { class: 'field', 'data-field': 'response_format' }, h('label', { for: 'response_format' }, t.format),
          f.format = h('select', { id: 'response_format', onchange: (e) => { this.#draft.format = e.target.value; this.#changed(); } }))),
      f.errors,
      h('div', { class: 'actions submit' }, f.start, tick('along', t.listenAlong)),
      h('div', { class: 'actions files' },
        h('button', { type: 'button', class: 'quiet', onclick: () => f.file.click() }, t.openFile),
        h('button', { type: 'button', class: 'quiet', onclick: () => this.#saveFile() }, t.saveFile), f.file));
  }

  // show brings the draft into the fields.
  #show() {
    const f = this.#fields;
    const d = this.#draft;
    for (const part of Object.keys(t.blocks)) f[part].value = d.blocks[part];
    f.free.value = d.free;
    f.lyrics.set(d.lyrics);
    f.lyrics.instrumental(d.instrumental);
    for (const name of ['seconds', 'seed', 'steps', 'guidance', 'format']) f[name].value = d[name];
    for (const name of ['instrumental', 'locked', 'along']) f[name].checked = d[name];
    f[`mode-${d.mode}`].checked = true;
    this.#mode(d.mode, true);
    this.#clearErrors();
  }

  #mode(value, only) {
    if (!only && value === 'free' && !this.#draft.free.trim()) {
      this.#draft.free = drafts.caption(this.#draft);
      this.#fields.free.value = this.#draft.free;
    }
    this.#draft.mode = value;
    this.#fields.blocks.hidden = value !== 'blocks';
    this.#fields.freeBox.hidden = value !== 'free';
    this.#changed();
  }

  #changed() {
    drafts.keep(this.#draft);
    this.#checkSoon();
  }

  #note(text, undo) {
    replace(this.#fields.note, text, ' ', undo && h('button', { type: 'button', class: 'link', onclick: () => {
      this.#draft = this.#former;
      this.#show();
      this.#note(t.undone);
    } }, t.undo));
  }

  #example(select) {
    const x = examples[select.value];
    select.value = '';
    if (!x) return;
    this.#former = this.#draft;
    this.#draft = {
      ...drafts.defaults(), format: this.#former.format, along: this.#former.along,
      mode: x.free ? 'free' : 'blocks', free: x.free ?? '', blocks: { ...drafts.defaults().blocks, ...x.blocks },
      lyrics: x.lyrics, instrumental: Boolean(x.instrumental), seconds: x.seconds,
    };
    this.#show();
    this.#note(t.exampleTaken(x.name), true);
  }

  #dice() {
    this.#draft.seed = String(crypto.getRandomValues(new Uint32Array(1))[0]);
    this.#fields.seed.value = this.#draft.seed;
    this.#changed();
  }

  async #open(input) {
    const [file] = input.files;
    input.value = '';
    if (!file) return;
    try {
      const body = parse(await file.text());
      if (!body || typeof body !== 'object' || Array.isArray(body)) throw new Error();
      this.take(body);
    } catch {
      this.#note(t.fileBad);
    }
  }

  #saveFile() {
    save(new Blob([`${drafts.encode(drafts.request(this.#draft), 2)}\n`], { type: 'application/json' }), 'song-request.json');
  }

  // check asks the server for the size of the prompt, a moment after the last change.
  #checkSoon() {
    clearTimeout(this.#check);
    if (this.#model) this.#check = setTimeout(() => this.#checkNow(), 350);
  }

  async #checkNow() {
    this.#asked?.abort();
    const asked = this.#asked = new AbortController();
    const body = drafts.request(this.#draft);
    const meter = this.#fields.meter.firstChild;
    const say = this.#fields.meter.lastChild;
    if (!body.instructions || !(body.input?.trim() || body.instrumental)) {
      meter.value = 0;
      setText(say, t.meterOff);
      return;
    }
    try {
      const r = await json('POST', 'v1/music/prompt', { body: drafts.encode(body), signal: asked.signal });
      meter.max = r.max_prompt_tokens;
      meter.high = r.max_prompt_tokens * 0.9;
      meter.value = r.prompt_tokens;
      const lines = [`${t.meter(r.prompt_tokens, r.max_prompt_tokens)}.`];
      if (r.max_audio_duration < this.#model.limits.max_audio_duration - 1) lines.push(t.room(r.max_audio_duration));
      const e = r.estimate;
      if (e && e.longest > 0) {
        const fit = r.audio_duration >= e.longest ? t.fits : r.audio_duration >= e.shortest ? t.tight : t.over;
        lines.push(`${t.estimate(e.shortest, e.longest)}, ${fit}`);
      }
      meter.setAttribute('aria-label', lines[0]);
      setText(say, lines.join(' '));
      this.#clearErrors(!this.#counted);
    } catch (error) {
      if (asked.signal.aborted || !(error instanceof ApiError)) return;
      if (error.problems.length) {
        setText(say, '');
        this.#showProblems(error.problems, false);
      }
    }
  }

  async #submit() {
    const f = this.#fields;
    if (f.start.disabled) return;
    if (!this.#draft.locked && this.#former !== this.#draft && this.#sent === this.#draft.seed) this.#dice();
    f.start.disabled = true;
    setText(f.start, t.starting);
    this.#clearErrors();
    try {
      this.#sent = this.#draft.seed;
      await this.#send(drafts.request(this.#draft), this.#draft.along);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#showProblems(error.problems.length ? error.problems : [{ pointer: '', message: error.forPeople }], true, error.problems.length > 0);
    } finally {
      f.start.disabled = false;
      setText(f.start, t.start);
    }
  }

  #sent = ''; // the seed of the last song
  #counted = true; // the box above the button is about fields

  // showProblems puts each problem at its field, and at a submission all of them above
  // the button.
  #showProblems(problems, sent, counted = true) {
    this.#clearErrors(!sent && !this.#counted);
    if (sent) this.#counted = counted;
    const { errors } = this.#fields;
    const list = problems.map((sentence) => {
      const name = this.#fieldOf(sentence.pointer);
      // The server calls a field by its name in the request, people by its label.
      const called = sentence.pointer.slice(1);
      const label = t.fieldNames[name];
      const problem = { message: label && sentence.message.startsWith(called) ? `“${label}”${sentence.message.slice(called.length)}` : sentence.message };
      const box = name && this.element.querySelector(`[data-field="${name}"]`);
      if (!box) return h('li', null, problem.message);
      const id = `${name}-problem`;
      box.querySelector(`#${id}`)?.remove();
      box.append(h('p', { class: 'problem', id }, problem.message));
      const field = this.#control(name);
      field.setAttribute('aria-invalid', 'true');
      field.dataset.described ??= field.getAttribute('aria-describedby') ?? '';
      field.setAttribute('aria-describedby', `${field.dataset.described} ${id}`.trim());
      box.closest('details')?.setAttribute('open', '');
      return h('li', null, h('button', { type: 'button', class: 'link', onclick: () => field.focus() }, problem.message));
    });
    if (!sent) return;
    errors.hidden = false;
    replace(errors, counted && h('strong', null, t.problems(problems.length)), h('ul', null, list));
    errors.focus();
    announce(problems.map((p) => p.message).join(' '));
  }

  // fieldOf is the field of the form that a pointer means.
  #fieldOf(pointer) {
    const name = pointer.slice(1);
    return { max_new_tokens: 'audio_duration', lyrics: 'input' }[name] ?? name;
  }

  #control(name) {
    if (name === 'instructions') return this.#draft.mode === 'free' ? this.#fields.free : this.#fields.global;
    return this.element.querySelector(`#${name}`);
  }

  // clearErrors forgets the problems, but not that the server could not take the song.
  #clearErrors(keepBox = false) {
    if (!keepBox) this.#fields.errors.hidden = true;
    for (const p of this.element.querySelectorAll('.problem')) p.remove();
    for (const e of this.element.querySelectorAll('[aria-invalid]')) {
      e.removeAttribute('aria-invalid');
      e.setAttribute('aria-describedby', e.dataset.described);
    }
  }
}
