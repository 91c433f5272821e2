package files

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"tallyard/domain/fault"
)

// TestHostileTrees copies what a workload may have prepared.
func TestHostileTrees(t *testing.T) {
	deep64 := strings.TrimSuffix(strings.Repeat("d/", 63), "/")
	for _, tc := range []struct {
		name    string
		prepare func(w *world, alg string)
		code    fault.Code // none: the copy succeeds
		names   string
	}{
		{"STO-01_link_out_of_the_space", func(w *world, alg string) {
			check(w.t, os.Symlink("/etc/passwd", alg+"/lib/link"))
		}, fault.CodeInvalidState, `"alg/lib/link"`},
		{"STO-01_link_inside_the_space", func(w *world, alg string) {
			check(w.t, os.Symlink("a", alg+"/lib/link"))
		}, fault.CodeInvalidState, `"alg/lib/link"`},
		{"STO-01_link_to_a_folder", func(w *world, alg string) {
			check(w.t, os.Symlink("/etc", alg+"/lib/link"))
		}, fault.CodeInvalidState, `"alg/lib/link"`},
		{"STO-01_dangling_link", func(w *world, alg string) {
			check(w.t, os.Symlink("nowhere", alg+"/lib/link"))
		}, fault.CodeInvalidState, `"alg/lib/link"`},
		{"STO-01_FIFO", func(w *world, alg string) {
			check(w.t, unix.Mkfifo(alg+"/fifo", 0o666))
		}, fault.CodeInvalidState, `"alg/fifo"`},
		{"STO-01_socket", func(w *world, alg string) {
			l, err := net.Listen("unix", shortSocket(w.t, alg))
			check(w.t, err)
			w.t.Cleanup(func() { _ = l.Close() })
		}, fault.CodeInvalidState, `"alg/s"`},
		{"STO-01_device", func(w *world, alg string) {
			if os.Geteuid() != 0 {
				w.t.Skip("only root makes devices")
			}
			if err := unix.Mknod(alg+"/zero", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
				w.t.Skip("no devices can be made here: ", err)
			}
		}, fault.CodeInvalidState, `"alg/zero"`},
		{"STO-01_hard_links_become_files_of_their_own", func(w *world, alg string) {
			w.write("other", "linked")
			check(w.t, os.Link(w.spaceDir+"/other", alg+"/hard"))
		}, "", ""},
		{"STO-01_64_levels", func(w *world, _ string) {
			w.write("alg/"+deep64+"/f", "deep")
		}, "", ""},
		{"STO-01_more_than_64_levels", func(w *world, _ string) {
			w.write("alg/"+deep64+"/d/d/f", "too deep")
		}, fault.CodeTooLong, `"alg/d/d`},
		{"STO-01_depth_that_no_path_reaches", func(w *world, alg string) {
			makeDeep(w.t, alg+"/deep", 300)
			w.t.Cleanup(func() { _, _ = w.delete("alg") })
		}, fault.CodeTooLong, `"alg/deep/d`},
		{"GEN-01_control_character", func(w *world, _ string) {
			w.write("alg/a\nb", "x")
		}, fault.CodeInvalidCharacters, "alg/a\uFFFDb"},
		{"GEN-01_invalid_UTF-8", func(w *world, _ string) {
			w.write("alg/a\xff", "x")
		}, fault.CodeInvalidCharacters, "alg/a\uFFFD"},
		{"GEN-01_twins", func(w *world, _ string) {
			w.write("alg/é", "x")
			w.write("alg/e\u0301", "x")
		}, fault.CodeDuplicate, "é"},
		{"GEN-01_NFD_and_chinese_names", func(w *world, _ string) {
			w.write("alg/e\u0301", "nfd")
			w.write("alg/数据/训练.py", "zh")
		}, "", ""},
		{"STO-01_reserved_name", func(w *world, _ string) {
			w.write("alg/.tallyard/uploads/x", "x")
		}, fault.CodeInvalidPath, ".tallyard"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.write("alg/lib/a", "plain")
			alg := filepath.Join(w.spaceDir, "alg")
			tc.prepare(w, alg)
			id := uuid.New()
			m, err := within(t, func() (Manifest, error) { return w.copyOut("alg", id) })
			if tc.code != "" {
				w.wantFault(err, tc.code, tc.names)
				if got := names(t, w.publishedDir); len(got) > 1 { // the journal of a copy to be retried
					t.Fatalf("left %v", got)
				}
				check(t, w.DiscardPartial(w.ctx, w.tenant, id))
				if got := names(t, w.publishedDir); len(got) != 0 {
					t.Fatalf("left %v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := filepath.Join(w.publishedDir, id.String())
			equal(t, tree(t, got), tree(t, alg))
			if v, err := w.VerifyArtefact(w.ctx, w.tenant, id, nil); err != nil || v != m {
				t.Fatalf("%+v %v", v, err)
			}
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Join(got, "hard"), &st); err == nil && st.Nlink != 1 {
				t.Fatal("the copy is linked to the source")
			}
		})
	}

	t.Run("ALG-05_empty_folder", func(t *testing.T) {
		w := newWorld(t)
		check(t, os.MkdirAll(w.spaceDir+"/alg/only/folders", 0o755))
		_, err := w.copyOut("alg", uuid.New())
		w.wantFault(err, fault.CodeInvalidState, `"alg"`, "no files")
	})
	t.Run("ALG-05_a_file_is_no_folder", func(t *testing.T) {
		w := newWorld(t)
		w.write("alg", "x")
		_, err := w.copyOut("alg", uuid.New())
		w.wantFault(err, fault.CodeInvalidState, `"alg"`)
	})
	t.Run("ALG-05_the_whole_space_without_its_hidden_area", func(t *testing.T) {
		w := newWorld(t)
		w.put("a/b", "x")
		id := uuid.New()
		if m, err := w.copyOut("", id); err != nil || m.Files != 1 {
			t.Fatalf("%+v %v", m, err)
		}
		equal(t, tree(t, filepath.Join(w.publishedDir, id.String())), map[string]string{"a/b": "x"})
	})
	t.Run("OPS-01_limits", func(t *testing.T) {
		w := newWorld(t)
		w.Store.maxFiles, w.Store.maxBytes = 3, 10
		for i := range 4 {
			w.write(fmt.Sprintf("many/%d", i), "")
		}
		_, err := w.copyOut("many", uuid.New())
		w.wantFault(err, fault.CodeTooMany, "3")
		w.write("large/a", "123456")
		w.write("large/b", "123456")
		_, err = w.copyOut("large", uuid.New())
		w.wantFault(err, fault.CodeLimitExceeded, "10")
	})
}

// TestChangeWhileCopying changes the source at the moment a file was copied.
func TestChangeWhileCopying(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(alg string) error
		names  string
		gone   bool
	}{
		{"STO-01_later_file_swapped_for_a_link", func(alg string) error {
			return errors.Join(os.Remove(alg+"/z"), os.Symlink("/etc/passwd", alg+"/z"))
		}, `"alg/z"`, false},
		{"STO-01_later_file_swapped_for_a_FIFO", func(alg string) error {
			return errors.Join(os.Remove(alg+"/z"), unix.Mkfifo(alg+"/z", 0o600))
		}, `"alg/z"`, false},
		{"STO-01_later_file_swapped_for_another", func(alg string) error {
			return os.Rename(alg+"/a", alg+"/z")
		}, `"alg/z"`, false},
		{"STO-01_later_folder_swapped_for_a_link", func(alg string) error {
			return errors.Join(os.RemoveAll(alg+"/sub"), os.Symlink("/etc", alg+"/sub"))
		}, `"alg/sub"`, false},
		{"STO-01_later_folder_swapped_for_a_FIFO", func(alg string) error {
			return errors.Join(os.RemoveAll(alg+"/sub"), unix.Mkfifo(alg+"/sub", 0o600))
		}, `"alg/sub"`, false},
		{"ALG-05_later_file_removed", func(alg string) error { return os.Remove(alg + "/z") }, `"alg/z"`, false},
		{"ALG-05_later_file_grows", func(alg string) error { return appendTo(alg + "/z") }, `"alg/z"`, false},
		{"ALG-05_copied_file_grows", func(alg string) error { return appendTo(alg + "/a") }, `"alg/a"`, false},
		{"ALG-05_copied_file_rewritten_in_place_with_its_old_time", func(alg string) error {
			info, err := os.Stat(alg + "/a")
			return errors.Join(err, os.WriteFile(alg+"/a", []byte("B"), 0o600), os.Chtimes(alg+"/a", info.ModTime(), info.ModTime()))
		}, `"alg/a"`, false},
		{"ALG-05_file_added", func(alg string) error { return os.WriteFile(alg+"/new", nil, 0o600) }, `"alg/new"`, false},
		{"ALG-11_folder_removed", func(alg string) error { return os.RemoveAll(alg) }, `"alg"`, true},
		{"ALG-11_folder_moved_away", func(alg string) error { return os.Rename(alg, alg+"2") }, `"alg"`, true},
		{"ALG-11_folder_swapped", func(alg string) error {
			return errors.Join(os.RemoveAll(alg), os.MkdirAll(alg+"/sub", 0o755), os.WriteFile(alg+"/a", []byte("A"), 0o600))
		}, `"alg"`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			for _, n := range []string{"a", "sub/x", "z"} {
				w.write("alg/"+n, "A")
			}
			alg := filepath.Join(w.spaceDir, "alg")
			w.afterFile = func(p string) {
				if p == "a" {
					time.Sleep(10 * time.Millisecond) // the kernel's clock for files ticks coarsely
					check(t, tc.change(alg))
				}
			}
			id := uuid.New()
			_, err := within(t, func() (Manifest, error) { return w.copyOut("alg", id) })
			if errors.Is(err, ErrSourceGone) != tc.gone {
				t.Fatal(err)
			}
			code := fault.CodeConflict
			if tc.gone {
				code = fault.CodeInvalidState
			}
			w.wantFault(err, code, tc.names)
			if _, err := os.Lstat(filepath.Join(w.publishedDir, id.String())); !errors.Is(err, os.ErrNotExist) {
				t.Fatal("published all the same")
			}
			// Put right, the same copy succeeds and holds what is there now.
			w.afterFile = nil
			check(t, os.RemoveAll(alg))
			w.write("alg/a", "new")
			if _, err := w.copyOut("alg", id); err != nil {
				t.Fatal(err)
			}
			equal(t, tree(t, filepath.Join(w.publishedDir, id.String())), map[string]string{"a": "new"})
		})
	}
}

// TestSwapStorm flips names between files, folders, links and FIFOs as fast as
// it can while everything that reads is called: no call may hang, and nothing
// from outside of the space may ever come out.
func TestSwapStorm(t *testing.T) {
	w := newWorld(t)
	secretDir := t.TempDir()
	check(t, os.MkdirAll(secretDir+"/sub", 0o755))
	for _, n := range []string{"f", "sub/f"} {
		check(t, os.WriteFile(filepath.Join(secretDir, n), []byte("SECRET"), 0o644))
	}
	w.Store.syncAround = func(*dir) error { return nil }
	w.write("alg/sub/f", "inside")
	w.write("alg/f", "inside")
	alg := filepath.Join(w.spaceDir, "alg")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{"f", "sub"} {
				at, aside := filepath.Join(alg, name), filepath.Join(w.spaceDir, "aside-"+name)
				_ = os.Rename(at, aside)
				if i%2 == 0 {
					_ = os.Symlink(filepath.Join(secretDir, name), at)
				} else {
					_ = unix.Mkfifo(at, 0o600)
				}
				_ = os.Remove(at)
				_ = os.Rename(aside, at)
			}
		}
	}()
	look := func(name string) {
		f, _, err := w.OpenRead(w.ctx, w.tenant, w.space, path(t, name))
		if err != nil {
			return
		}
		defer f.Close()
		if b, err := io.ReadAll(f); err == nil && string(b) != "inside" {
			t.Errorf("%s holds %q", name, b)
		}
	}
	published := 0
	_, err := within(t, func() (Manifest, error) {
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			look("alg/f")
			look("alg/sub/f")
			_, _ = w.List(w.ctx, w.tenant, w.space, path(t, "alg/sub"), "", 10)
			id := uuid.New()
			if _, err := w.copyOut("alg", id); err == nil {
				published++
				for p, c := range tree(t, filepath.Join(w.publishedDir, id.String())) {
					if c != "inside" {
						t.Errorf("published %s holds %q", p, c)
					}
				}
			} else if _, ok := fault.All(err); !ok {
				t.Errorf("not for people: %v", err)
			}
			check(t, w.DiscardPartial(w.ctx, w.tenant, id))
		}
		return Manifest{}, nil
	})
	check(t, err)
	close(stop)
	<-stopped
	t.Logf("published %d times", published)
}

// A look before opening keeps almost everything away; this is about what is put
// there after the look.
func TestSwappedAfterTheLook(t *testing.T) {
	w := newWorld(t)
	check(t, unix.Mkfifo(filepath.Join(w.spaceDir, "fifo"), 0o600))
	check(t, os.Symlink("/etc", filepath.Join(w.spaceDir, "link")))
	d, err := w.Store.space(w.ctx, w.tenant, w.space)
	check(t, err)
	defer d.close()
	t.Run("STO-01_opening_a_FIFO_does_not_wait", func(t *testing.T) {
		_, err := within(t, func() (Manifest, error) {
			f, err := d.openat("fifo", unix.O_RDONLY, 0)
			if err == nil {
				err = f.Close()
			}
			return Manifest{}, err
		})
		check(t, err)
		if _, err := within(t, func() (Manifest, error) { _, err := d.child("fifo"); return Manifest{}, err }); !errors.Is(err, errNotDir) {
			t.Fatal(err)
		}
	})
	t.Run("STO-01_a_link_is_not_followed", func(t *testing.T) {
		if _, err := d.openat("link", unix.O_RDONLY, 0); !errors.Is(err, unix.ELOOP) {
			t.Fatal(err)
		}
		if _, err := d.child("link"); !errors.Is(err, errNotDir) {
			t.Fatal(err)
		}
	})
	t.Run("STO-01_only_single_names_reach_the_kernel", func(t *testing.T) {
		for _, name := range []string{"", ".", "..", "a/b", "/etc", "a\x00b"} {
			if _, err := d.lstat(name); !errors.Is(err, errBadName) {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
}

// TestHostileHiddenArea puts things where the platform keeps unfinished uploads.
func TestHostileHiddenArea(t *testing.T) {
	for name, prepare := range map[string]func(at string) error{
		"STO-01_link":         func(at string) error { return os.Symlink("/tmp", at) },
		"STO-01_FIFO":         func(at string) error { return unix.Mkfifo(at, 0o600) },
		"STO-01_file":         func(at string) error { return os.WriteFile(at, nil, 0o600) },
		"STO-01_link_in_area": func(at string) error { return errors.Join(os.Mkdir(at, 0o755), os.Symlink("/tmp", at+"/uploads")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			check(t, prepare(filepath.Join(w.spaceDir, ".tallyard")))
			_, err := within(t, func() (Manifest, error) {
				_, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), 0, 1, strings.NewReader("x"), nil)
				return Manifest{}, err
			})
			w.wantFault(err, fault.CodeInvalidState, ".tallyard")
		})
	}
	t.Run("STO-01_upload_file_swapped", func(t *testing.T) {
		w := newWorld(t)
		outside := filepath.Join(t.TempDir(), "outside")
		check(t, os.WriteFile(outside, []byte("stays"), 0o600))
		if _, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), 0, 2, strings.NewReader("x"), nil); err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(w.spaceDir, ".tallyard/uploads", keyOf("f")+".data")
		for _, swap := range []func() error{
			func() error { return os.Symlink(outside, data) },
			func() error { return unix.Mkfifo(data, 0o600) },
		} {
			check(t, os.Remove(data))
			check(t, swap())
			for _, offset := range []int64{0, 1} {
				_, err := within(t, func() (Manifest, error) {
					_, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), offset, 2, strings.NewReader("y"), nil)
					return Manifest{}, err
				})
				w.wantFault(err, fault.CodeInvalidState)
			}
		}
		if b, err := os.ReadFile(outside); err != nil || string(b) != "stays" {
			t.Fatalf("%q %v", b, err)
		}
		check(t, w.DiscardUpload(w.ctx, w.tenant, w.space, path(t, "f")))
		w.put("f", "fine again")
	})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func appendTo(name string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("more")
	return errors.Join(err, f.Close())
}

// within runs something that must not hang.
func within(t *testing.T, do func() (Manifest, error)) (Manifest, error) {
	t.Helper()
	type result struct {
		m   Manifest
		err error
	}
	done := make(chan result, 1)
	go func() {
		m, err := do()
		done <- result{m, err}
	}()
	select {
	case r := <-done:
		return r.m, r.err
	case <-time.After(30 * time.Second):
		t.Fatal("it hangs")
		return Manifest{}, nil
	}
}

// shortSocket is a name for a socket; a path of over 107 bytes can't be bound,
// so the folder is entered by its number.
func shortSocket(t testing.TB, folder string) string {
	t.Helper()
	d, err := os.Open(folder)
	check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return fmt.Sprintf("/proc/self/fd/%d/s", d.Fd())
}
