// audit-http.mjs URL TOKEN: runs every audit of npm graphql-http.
import { serverAudits } from 'graphql-http';

const [url, token] = process.argv.slice(2);
if (!url || !token) {
  console.error('usage: node audit-http.mjs URL TOKEN');
  process.exit(2);
}

const fetchFn = (input, init = {}) =>
  fetch(input, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } });

let passed = 0;
let failed = 0;
for (const audit of serverAudits({ url, fetchFn })) {
  const result = await audit.fn();
  if (result.status === 'ok') {
    passed++;
  } else {
    failed++;
    console.log(`${result.status} ${result.id} ${result.name}: ${result.reason}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
