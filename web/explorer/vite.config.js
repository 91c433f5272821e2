import { defineConfig } from 'vite';

export default defineConfig({
  // The page is served at / and at /explorer/, everything else below /explorer/.
  base: '/explorer/',
  build: {
    outDir: 'build',
    emptyOutDir: true,
    target: 'es2022',
    sourcemap: false,
    modulePreload: { polyfill: false },
    // Files of their own: the content security policy allows no data: scripts.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 8192,
    rollupOptions: {
      onwarn(warning, tell) {
        // Directives for servers that render React; there is none here.
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') {
          tell(warning);
        }
      },
    },
  },
  worker: { format: 'es' },
});
