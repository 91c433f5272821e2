package conformance

import (
	"embed"
	"io/fs"
)

//go:embed npm/clients.mjs npm/package.json npm/package-lock.json
var npmFiles embed.FS

// npmScripts are the scripts that run the clients of npm, with the versions that they need.
func npmScripts() fs.FS {
	sub, err := fs.Sub(npmFiles, "npm")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}
