// pack.mjs FROM TO: compresses every file below FROM into TO, with the same
// bytes each time.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';

const [from, to] = process.argv.slice(2);
rmSync(to, { recursive: true, force: true });
for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) {
    continue;
  }
  const file = join(entry.parentPath, entry.name);
  const target = join(to, `${relative(from, file)}.gz`);
  const packed = gzipSync(readFileSync(file), { level: 9 });
  packed[9] = 255; // the system it was made on
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, packed);
}
