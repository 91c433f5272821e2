// Package readme runs the README's first session as a newcomer would, block by
// block, and holds the README to what really came out.
package readme_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// block is a fenced block of the README with its place in the text.
type block struct {
	info, text string
	start, end int // of the text, without the fences
}

var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```\n")

func blocks(readme string) []block {
	var list []block
	for _, m := range fence.FindAllStringSubmatchIndex(readme, -1) {
		list = append(list, block{readme[m[2]:m[3]], readme[m[4]:m[5]], m[4], m[5]})
	}
	return list
}

// Opaque and passing things differ from run to run; they are shown as they
// came out and not compared.
var passing = regexp.MustCompile(`"[A-Za-z0-9_-]{20,}"|"\d{4}-\d\d-\d\dT[0-9:.]+Z"|"sha256:[0-9a-f]{64}"|"tallyard/[^"]*"`)

func masked(s string) string { return passing.ReplaceAllString(s, `"…"`) }

// TestTheFirstSession runs the blocks marked "sh session" in one shell and
// those marked "sh watch" beside it, and compares what each printed with the
// text block behind it. TALLYARD_WRITE_README=1 writes the output there.
func TestTheFirstSession(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	place := checkout(t, root)
	url := program(t, filepath.Join(place, "bin", "tallyard"))
	shell := newShell(t, place, url)
	var watch *watcher
	found := 0
	list := blocks(readme)
	for i, bl := range list {
		var got string
		switch bl.info {
		case "sh session":
			got = shell.run(t, bl.text)
		case "sh watch":
			watch = watchOver(t, place, url, bl.text)
			continue
		case "text watch":
			got = watch.output(t, strings.Count(bl.text, "\n"))
			if masked(got) != masked(bl.text) && os.Getenv("TALLYARD_WRITE_README") == "" {
				t.Errorf("the README shows\n%s\nand the watcher printed\n%s", bl.text, got)
			}
			readme = strings.Replace(readme, "```text watch\n"+bl.text+"```", "```text watch\n"+got+"```", 1)
			continue
		default:
			continue
		}
		found++
		if got == "" {
			continue
		}
		want := ""
		if i+1 < len(list) && list[i+1].info == "text output" {
			want = list[i+1].text
		}
		if masked(got) == masked(want) {
			continue
		}
		if os.Getenv("TALLYARD_WRITE_README") == "" {
			t.Errorf("the README shows\n%s\nand the block\n%s\nprinted\n%s", want, bl.text, got)
			continue
		}
		code := "```sh session\n" + bl.text + "```\n"
		old := code
		if want != "" {
			old += "\n```text output\n" + want + "```\n"
		}
		readme = strings.Replace(readme, old, code+"\n```text output\n"+got+"```\n", 1)
	}
	if found < 5 {
		t.Fatalf("only %d blocks of the session were found", found)
	}
	if os.Getenv("TALLYARD_WRITE_README") != "" {
		if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(readme), 0o644); err != nil { //nolint:gosec // a page for everybody
			t.Fatal(err)
		}
	}
}

// checkout makes a directory that looks like a checkout that was built.
func checkout(t *testing.T, root string) string {
	place := t.TempDir()
	if err := os.Mkdir(filepath.Join(place, "bin"), 0o755); err != nil { //nolint:gosec // like a checkout
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "examples"), filepath.Join(place, "examples")); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(place, "bin", "tallyard"), "./cmd/tallyard")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return place
}

// program runs the development mode and gives its address.
func program(t *testing.T, binary string) string {
	out := &lines{found: make(chan string, 1)}
	dir, err := os.MkdirTemp("", "readme-") // t.TempDir's path is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "dev", "--addr", "127.0.0.1:0", "--data-dir", dir) //nolint:gosec // built above
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program did not stop cleanly: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	select {
	case url := <-out.found:
		return url
	case <-time.After(2 * time.Minute):
		t.Fatalf("the program is not ready:\n%s", out.text.String())
		return ""
	}
}

// lines waits for the program's word that it is ready.
type lines struct {
	text  bytes.Buffer
	found chan string
}

var listening = regexp.MustCompile(`listening +(http\S+)`)

func (l *lines) Write(b []byte) (int, error) {
	l.text.Write(b)
	if bytes.Contains(l.text.Bytes(), []byte("Ready after")) {
		if m := listening.FindSubmatch(l.text.Bytes()); m != nil {
			select {
			case l.found <- string(m[1]):
			default:
			}
		}
	}
	return len(b), nil
}

func environment(url string) []string {
	return append(os.Environ(), "TALLYARD_URL="+url, "TALLYARD_TOKEN=")
}

// shell keeps what earlier blocks defined by running all of them anew before
// each block would do things twice; so it is one process that is fed.
type shell struct {
	in  interface{ Write([]byte) (int, error) }
	out chan string
}

const mark = "__end_of_block__"

func newShell(t *testing.T, dir, url string) *shell {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, "bash", "-u")
	cmd.Dir, cmd.Env = dir, environment(url)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{in: in, out: make(chan string)}
	w := &splitter{out: s.out}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait(); cancel() })
	return s
}

// splitter gives each block's output as one text.
type splitter struct {
	text bytes.Buffer
	out  chan string
}

func (w *splitter) Write(b []byte) (int, error) {
	w.text.Write(b)
	if i := bytes.Index(w.text.Bytes(), []byte(mark+"\n")); i >= 0 {
		text := string(w.text.Bytes()[:i])
		w.text.Next(i + len(mark) + 1)
		w.out <- text
	}
	return len(b), nil
}

func (s *shell) run(t *testing.T, text string) string {
	if _, err := s.in.Write([]byte(text + "\necho " + mark + "\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case out := <-s.out:
		return out
	case <-time.After(time.Minute):
		t.Fatalf("this block does not end:\n%s", text)
		return ""
	}
}

// watcher is a terminal that watches.
type watcher struct{ text *safeBuffer }

func watchOver(t *testing.T, dir, url, text string) *watcher {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "bash", "-c", text)
	cmd.Dir, cmd.Env = dir, environment(url)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	w := &watcher{text: &safeBuffer{}}
	cmd.Stdout, cmd.Stderr = w.text, w.text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	w.wait(t, 1) // its snapshot is there: it watches
	return w
}

func (w *watcher) output(t *testing.T, n int) string {
	w.wait(t, max(n, 2))
	return w.text.String()
}

func (w *watcher) wait(t *testing.T, n int) {
	deadline := time.Now().Add(30 * time.Second)
	for strings.Count(w.text.String(), "\n") < n {
		if time.Now().After(deadline) {
			t.Fatalf("the watcher printed less than %d lines:\n%s", n, w.text.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}
