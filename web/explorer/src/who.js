import { createElement as h, useState, useSyncExternalStore } from 'react';

const other = 'another token';

// Who lets a person choose as whom the explorer asks.
export function Who({ session, onChange }) {
  const name = useSyncExternalStore(session.subscribe, () => session.person?.name ?? other);
  const [text, setText] = useState('');
  const note = session.people.find(p => p.name === name)?.note ?? '';
  return h(
    'span',
    { className: 'tallyard-who' },
    h(
      'label',
      { title: note },
      'Ask as ',
      h(
        'select',
        {
          id: 'tallyard-person',
          value: name,
          onChange: event => {
            session.choose(event.target.value);
            onChange();
          },
        },
        session.people.map(p => h('option', { key: p.name, value: p.name }, p.note ? `${p.name} (${p.note})` : p.name)),
        h('option', { key: other, value: other }, 'another token…'),
      ),
    ),
    name === other &&
      h('input', {
        id: 'tallyard-token',
        type: 'password',
        autoComplete: 'off',
        placeholder: 'Bearer token',
        'aria-label': 'Bearer token',
        value: text,
        onChange: event => setText(event.target.value),
        onBlur: () => {
          session.setToken(text);
          onChange();
        },
        onKeyDown: event => {
          if (event.key === 'Enter') {
            event.target.blur();
          }
        },
      }),
  );
}
