// What of the page one looks at, in the URL's fragment: "#kernels&ranks=1-2&steps=3-7&lanes=0.95:1&q.kernels=mlp".
const parts = new Map();  // in the order in which they are put back
let place = '';           // the section
let isGiven = false;      // the fragment is being put back
let timer = null;

const escaped = (text) => encodeURIComponent(text).replace(/%(2C|2F|3A|40|20)/g,
    (all) => (all === '%20' ? '+' : decodeURIComponent(all)));
const unescaped = (text) => {
  try {
    return decodeURIComponent(text.replace(/\+/g, ' '));
  } catch {
    return text;
  }
};

const write = () => {
  clearTimeout(timer);
  timer = null;
  const said = [...parts].map(([key, part]) => [key, part.get()]).filter(([, value]) => value)
      .map(([key, value]) => `${key}=${escaped(value)}`);
  try {
    history.replaceState(null, '', `#${[place, ...said].filter(Boolean).join('&')}`);
  } catch {
    // A page without an address of its own has no link to copy.
  }
};
// Safari takes 100 addresses in 30 s.
export const noteView = () => {
  if (!isGiven && timer === null) timer = setTimeout(write, 350);
};
// get(): a text, or null where it is as the page opens; set(text or null).
export const remember = (key, get, set) => parts.set(key, {get, set});

const put = () => {
  const words = location.hash.slice(1).split('&').filter(Boolean);
  const given = new Map(words.filter((word) => word.includes('=')).map((word) => {
    const at = word.indexOf('=');
    return [word.slice(0, at), unescaped(word.slice(at + 1))];
  }));
  isGiven = true;
  for (const [key, part] of parts) {
    const value = given.get(key) || null;
    if ((part.get() || null) !== value) part.set(value);
  }
  isGiven = false;
  place = words.find((word) => !word.includes('=')) || '';
  goTo(place, {behavior: 'instant'});
};
export const goTo = (id, how = {}) => {
  document.querySelectorAll('.target').forEach((old) => old.classList.remove('target'));
  const target = id === '' ? null : document.getElementById(id);
  if (target === null) return;
  target.classList.add('target');
  target.scrollIntoView(how);
};

export const linkToView = () => {
  write();
  return location.href;
};
// Links to a section keep the rest of the view.
export const followFragment = () => {
  addEventListener('hashchange', put);
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    place = link.getAttribute('href').slice(1);
    write();
    goTo(place);
  });
  put();
};
