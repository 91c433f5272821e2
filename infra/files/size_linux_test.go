package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"tallyard/domain/fault"
)

func TestSizes(t *testing.T) {
	t.Run("G18_file_over_2_GiB", func(t *testing.T) {
		if testing.Short() {
			t.Skip("hashes gigabytes")
		}
		w := newWorld(t)
		const size = 2<<30 + 12345
		w.write("alg/big", "begins")
		check(t, os.Truncate(filepath.Join(w.spaceDir, "alg/big"), size))
		f, err := os.OpenFile(filepath.Join(w.spaceDir, "alg/big"), os.O_WRONLY, 0)
		check(t, err)
		_, err = f.WriteAt([]byte("ends"), size-4)
		check(t, err)
		check(t, f.Close())
		id := uuid.New()
		m, err := w.copyOut("alg", id)
		if err != nil || m.Bytes != size {
			t.Fatalf("%+v %v", m, err)
		}
		var st unix.Stat_t
		check(t, unix.Stat(filepath.Join(w.publishedDir, id.String(), "big"), &st))
		if st.Size != size || st.Blocks*512 > 16<<20 {
			t.Fatalf("size %d takes %d bytes", st.Size, st.Blocks*512)
		}
		in, info, err := w.OpenArtefact(w.ctx, w.tenant, id, path(t, "big"))
		check(t, err)
		defer in.Close()
		tail := make([]byte, 4)
		if _, err := in.Seek(-4, io.SeekEnd); err != nil || info.Size() != size {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(in, tail); err != nil || string(tail) != "ends" {
			t.Fatalf("%q %v", tail, err)
		}
	})

	t.Run("G18_upload_beyond_2_GiB_goes_on", func(t *testing.T) {
		w := newWorld(t)
		const size = 3 << 30
		if _, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), 0, size, strings.NewReader("x"), nil); err != nil {
			t.Fatal(err)
		}
		check(t, os.Truncate(filepath.Join(w.spaceDir, ".tallyard/uploads", keyOf("f")+".data"), size-2))
		n, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), size-2, size, strings.NewReader("y"), nil)
		if err != nil || n != size-1 {
			t.Fatalf("%d %v", n, err)
		}
	})

	t.Run("OPS-01_10000_small_files", func(t *testing.T) {
		if testing.Short() {
			t.Skip("makes many files")
		}
		w := newWorld(t)
		for i := range 10_000 {
			w.write(fmt.Sprintf("alg/%02d/%d.py", i%100, i), fmt.Sprint(i))
		}
		var last Progress
		calls := 0
		begun := time.Now()
		m, err := w.CopyOut(w.ctx, w.tenant, w.space, path(t, "alg"), uuid.New(), func(p Progress) {
			if p.DoneFiles < last.DoneFiles || p.DoneBytes < last.DoneBytes || p.TotalFiles != 10_000 {
				t.Errorf("%+v after %+v", p, last)
			}
			last, calls = p, calls+1
		})
		if err != nil || m.Files != 10_000 || last.DoneFiles != 10_000 || last.DoneBytes != m.Bytes {
			t.Fatalf("%+v %+v %v", m, last, err)
		}
		t.Log(time.Since(begun))
	})
}

func TestDiskFull(t *testing.T) {
	small := smallDisk(t)
	t.Run("OPS-02_full_disk_fails_cleanly_and_the_retry_goes_on", func(t *testing.T) {
		w := newWorldAt(t, t.TempDir(), small)
		for i := range 10 {
			w.write(fmt.Sprintf("alg/%d", i), strings.Repeat("x", 1<<20))
		}
		filler := filepath.Join(small, "filler")
		check(t, os.WriteFile(filler, bytes.Repeat([]byte{1}, 10<<20), 0o600))
		id := uuid.New()
		_, err := w.copyOut("alg", id)
		w.wantFault(err, fault.CodeQuotaExceeded, "full")
		check(t, os.Remove(filler))
		var last Progress
		_, err = w.CopyOut(w.ctx, w.tenant, w.space, path(t, "alg"), id, func(p Progress) { last = p })
		if err != nil || last.ReusedFiles == 0 || last.ReusedFiles == 10 {
			t.Fatalf("%+v %v", last, err)
		}
		_, err = w.RemoveArtefact(w.ctx, w.tenant, id, nil)
		check(t, err)
	})
	t.Run("STO-02_upload_to_a_full_disk_keeps_its_offset", func(t *testing.T) {
		w := newWorldAt(t, small, t.TempDir())
		const size = 30 << 20
		n, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), 0, size, bytes.NewReader(make([]byte, size)), nil)
		w.wantFault(err, fault.CodeQuotaExceeded, "full")
		at, _, err := w.Received(w.ctx, w.tenant, w.space, path(t, "f"))
		if err != nil || at != n || n == 0 {
			t.Fatalf("%d %d %v", at, n, err)
		}
		check(t, w.DiscardUpload(w.ctx, w.tenant, w.space, path(t, "f")))
		w.put("f", "fits")
	})
}

// smallDisk mounts a file system of 16 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root mounts a small disk")
	}
	at := t.TempDir()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=16m,mode=0755"); err != nil {
		t.Skip("no small disk can be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return at
}

// TestAsOrdinaryUser runs the tests of this package again without root's
// rights, for which read-only folders are truly read-only.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the whole run is one of an ordinary user")
	}
	const nobody = 65534
	exe, err := os.Executable()
	check(t, err)
	dir := t.TempDir()
	for d := dir; d != "/" && d != "/tmp"; d = filepath.Dir(d) {
		check(t, os.Chmod(d, 0o755))
	}
	program, err := os.ReadFile(exe)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "files.test"), program, 0o755))
	check(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o755))
	check(t, os.Chown(filepath.Join(dir, "tmp"), nobody, nobody))
	cmd := exec.Command(filepath.Join(dir, "files.test"), "-test.v", "-test.short", "-test.run",
		"^(TestCopyOut|TestCopyIn|TestUpload|TestDelete|TestJournal|TestDiscardAndRemove|TestPermissions|TestHostileHiddenArea)$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "tmp"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestPermissions")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestPermissions(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("nothing is forbidden to root; TestAsOrdinaryUser runs it")
	}
	t.Run("STO-02_what_may_not_be_read_is_named", func(t *testing.T) {
		w := newWorld(t)
		w.write("alg/closed", "x")
		w.write("alg/open", "x")
		check(t, os.Chmod(w.spaceDir+"/alg/closed", 0))
		_, err := w.copyOut("alg", uuid.New())
		w.wantFault(err, fault.CodeInvalidState, `"alg/closed"`, "permissions")
		_, _, err = w.OpenRead(w.ctx, w.tenant, w.space, path(t, "alg/closed"))
		w.wantFault(err, fault.CodeInvalidState, `"alg/closed"`)
		check(t, os.Chmod(w.spaceDir+"/alg", 0o555))
		_, _, _, err = w.Receive(w.ctx, w.tenant, w.space, path(t, "alg/new"), 0, 1, strings.NewReader("x"), nil)
		w.wantFault(err, fault.CodeInvalidState, "permissions")
	})
	t.Run("STO-02_closed_folders_are_deleted", func(t *testing.T) {
		w := newWorld(t)
		w.write("d/e/f", "x")
		check(t, os.Chmod(w.spaceDir+"/d/e", 0))
		check(t, os.Chmod(w.spaceDir+"/d", 0))
		got, err := w.delete("d")
		if err != nil || got.DoneFiles != 3 {
			t.Fatalf("%+v %v", got, err)
		}
	})
}
