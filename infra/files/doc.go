// Package files keeps users' files and published artefacts on a real file
// system: spaces under <spaces>/<tenant>/<space>/, published artefacts under
// <published>/<tenant>/<artefact>/ with their manifest beside them.
//
// Whatever users and workloads can write is hostile, and it may change between
// any two system calls. So, below the two configured directories:
//
//   - Every step down is one openat with O_NOFOLLOW of one name, relative to an
//     open directory. No text that holds a slash ever reaches the kernel, so
//     nothing escapes, and links are not followed even when they stay inside.
//     The two configured directories and the tenants' folders, which only the
//     platform writes, are entered through os.Root. It is not used further down
//     because it follows links that stay inside and because its OpenRoot waits
//     for ever on a FIFO that was put in a directory's place.
//   - Files are opened with O_NONBLOCK and are looked at after opening: only
//     regular files are read or written. Links, FIFOs, sockets and devices are
//     listed as OTHER and can be deleted; reading one is refused, and a copy
//     that meets one fails naming it, since a copy without it would not be
//     what the user saw. A file with several hard links is an ordinary file:
//     every copy of it is a file of its own.
//   - Names that can't be written as a storage.Path (control characters,
//     invalid UTF-8, backslashes, the reserved name) are listed as OTHER without
//     a path and make a copy fail. A name that isn't in NFC is found by its NFC
//     form; when a folder holds two names with one NFC form, one is found and
//     the other is listed as OTHER.
//   - Sizes are counted while copying; what was announced before is not believed.
//
// Errors meant for people are *fault.Fault and name paths inside the space
// only; all others are wrapped errors to be logged and masked.
package files
