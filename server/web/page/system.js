// What runs here: from the model's description and the server's figures.
import { request } from './api.js';
import { h, replace } from './dom.js';
import { t } from './texts.js';

// figures reads Prometheus's text form: name{labels} value.
function figures(text) {
  const found = {};
  for (const [, name, labels, value] of text.matchAll(/^(skald_[a-z_]+)(\{[^}]*\})? (\S+)$/gm)) {
    found[name + (labels ?? '')] = Number(value);
    if (name === 'skald_build_info') found.version = labels.match(/version="([^"]*)"/)?.[1];
  }
  return found;
}

export async function showSystem(model) {
  const list = h('dl', { class: 'system' });
  const close = h('button', { type: 'button', onclick: () => dialog.close() }, t.close);
  const dialog = h('dialog', { 'aria-labelledby': 'system-title', class: 'wide', onclose: () => { clearInterval(timer); dialog.remove(); } },
    h('h2', { id: 'system-title' }, t.system), list,
    model?.built_in && h('section', null, h('h3', null, t.builtInTitle), h('p', null, t.builtIn)),
    model?.built_in && h('section', null, h('h3', null, t.realTitle), h('p', null, t.real), h('pre', { tabindex: '0' }, t.realCommand), h('p', null, t.realCheck)),
    h('div', { class: 'actions' }, close));
  document.body.append(dialog);
  dialog.showModal();
  const fill = async () => {
    let f = {};
    try {
      f = figures(await (await request('GET', 'metrics')).text());
    } catch { /* the rows say so */ }
    const songs = (state) => f[`skald_songs{state="${state}"}`] ?? 0;
    const taken = f['skald_kv_blocks{state="taken"}'];
    const blocks = taken + f['skald_kv_blocks{state="free"}'];
    const total = f.skald_device_memory_size_bytes;
    const rows = {
      model: model ? `${model.title || model.id}${model.title ? ` (${model.id})` : ''}` : t.unknown,
      device: model?.device, precision: model?.precision, version: f.version,
      memory: total ? t.memory(total - f.skald_device_memory_free_bytes, total) : t.unknown,
      songs: f.skald_song_places ? t.songsNow(songs('singing'), songs('waiting'), f.skald_song_places) : t.unknown,
      cache: blocks > 0 ? t.percentUsed(taken / blocks * 100) : t.unknown,
      sound: model && t.soundIs(model.sample_rate, model.channels),
      limits: model && t.limitsAre(model.limits.max_audio_duration, model.limits.max_prompt_tokens),
    };
    replace(list, Object.entries(rows).map(([name, value]) => h('div', null, h('dt', null, t.systemRows[name]), h('dd', null, value || t.unknown))));
  };
  const timer = setInterval(fill, 2000);
  await fill();
}

// showNotice tells what the model's licence asks for.
export function showNotice() {
  const dialog = h('dialog', { 'aria-labelledby': 'notice-title', class: 'wide', onclose: () => dialog.remove() },
    h('h2', { id: 'notice-title' }, t.noticeMore), t.noticeText.map((p) => h('p', null, p)),
    h('div', { class: 'actions' }, h('button', { type: 'button', onclick: () => dialog.close() }, t.close)));
  document.body.append(dialog);
  dialog.showModal();
}
