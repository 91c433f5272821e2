import './workers.js';
import 'graphiql/style.css';
import './style.css';

import { createElement as h, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { GraphiQL, HISTORY_PLUGIN } from 'graphiql';

import { createFetcher } from './fetcher.js';
import { createSession } from './session.js';
import { Who } from './who.js';

function Explorer({ config, session, fetcher }) {
  // Another person may see another answer to the schema question too (or none
  // before): a new key makes GraphiQL ask again.
  const [generation, setGeneration] = useState(0);
  return h(
    GraphiQL,
    {
      key: generation,
      fetcher,
      defaultQuery: config.example,
      plugins: [HISTORY_PLUGIN],
      isHeadersEditorEnabled: true,
      shouldPersistHeaders: false,
    },
    h(
      GraphiQL.Logo,
      null,
      h(
        'span',
        { className: 'tallyard-logo' },
        'Tallyard',
        h(Who, { session, onChange: () => setGeneration(n => n + 1) }),
      ),
    ),
  );
}

async function start() {
  const root = document.getElementById('root');
  const response = await fetch('/explorer/config.json', { headers: { Accept: 'application/json' } });
  if (!response.ok) {
    root.textContent = `The explorer could not read its configuration (${response.status}).`;
    return;
  }
  const config = await response.json();
  const session = createSession(config.people ?? []);
  const fetcher = createFetcher(config.endpoint, session);
  createRoot(root).render(h(Explorer, { config, session, fetcher }));
}

start();
