// Pausing and resuming, where that is allowed. The secret is kept here and nowhere else, for as long as the page is open.

import { h, say } from './draw.js';
import { state } from './state.js';

let secret = null;

function ask() {
  const dialog = document.getElementById('ask');
  const input = document.getElementById('token');
  input.value = '';
  dialog.returnValue = 'no';
  dialog.showModal();
  input.focus();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      const given = dialog.returnValue === 'yes' && input.value;
      input.value = '';
      resolve(given || null);
    }, { once: true });
  });
}

async function post(path) {
  secret ??= await ask();
  if (!secret) return null;
  try {
    const response = await fetch(path, { method: 'POST', headers: { Authorization: `Bearer ${secret}` } });
    if (response.status === 401) secret = null;
    return response.ok ? '' : (await response.text()).trim();
  } catch {
    return 'The daemon does not answer.';
  }
}

/** A button that pauses a tenant or has it go on; nothing where nothing may be changed. */
export function control(find) {
  const said = h('span', { class: 'soft', role: 'status' });
  const button = h('button', { type: 'button' });
  const element = h('p', { class: 'control' }, said, button);
  button.addEventListener('click', async () => {
    const row = find();
    if (!row) return;
    button.disabled = true;
    const verb = row.state === 'paused' ? 'resume' : 'pause';
    const wrong = await post(`api/tenants/${row.gpu}/${row.tenant}/${verb}`);
    button.disabled = false;
    if (wrong != null) say(said, wrong || (verb === 'pause' ? 'It is told to stand still.' : 'It is told to go on.'));
  });
  return {
    element,
    update(row) {
      element.hidden = !state.admin;
      say(button, row.state === 'paused' ? 'Resume' : 'Pause');
    },
  };
}
