// ws-client.mjs URL TOKEN DOCUMENT [COUNT [VARIABLES]]: subscribes with the
// graphql-ws client, prints each answer as a line of JSON, and ends after
// COUNT of them (default: when the server completes). What went wrong is one
// line of JSON, {"closed": code, "reason": …} or {"errors": […]}, and status 1.
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';

const [url, token, query, count = '0', variables] = process.argv.slice(2);
if (!url || !token || !query) {
  console.error('usage: node ws-client.mjs URL TOKEN DOCUMENT [COUNT [VARIABLES]]');
  process.exit(2);
}

const client = createClient({
  url: url.replace(/^http/, 'ws'),
  webSocketImpl: WebSocket,
  retryAttempts: 0,
  connectionParams: { Authorization: `Bearer ${token}` },
});

try {
  let seen = 0;
  for await (const item of client.iterate({ query, variables: variables && JSON.parse(variables) })) {
    console.log(JSON.stringify(item));
    if (++seen === Number(count)) {
      break;
    }
  }
  await client.dispose();
} catch (problem) {
  const shown = Array.isArray(problem) ? { errors: problem } : { closed: problem.code, reason: problem.reason ?? problem.message };
  console.log(JSON.stringify(shown));
  process.exitCode = 1;
}
