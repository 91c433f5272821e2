package explorer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"tallyard/graph/transport"
	"tallyard/graph/transport/transporttest"
	explorer "tallyard/web/explorer"
)

const example = `# A worked example: run it with the button above, or with Ctrl-Enter.
query Example {
  whoAmI
  hello(name: "explorer")
}

subscription Live {
  count(to: 3)
}
`

// browser starts Chromium with no network but loopback, as far as flags can
// do that: every name but the loopback address fails to resolve.
func browser(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		missing := errors.New("chromium is missing; on Debian: apt-get install chromium")
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox,
		chromedp.WindowSize(1400, 900),
		chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, flags...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// watched collects what a page asks for and complains of.
type watched struct {
	mu       sync.Mutex
	outside  []string
	problems []string
}

func (w *watched) listen(ctx context.Context, own string) error {
	return chromedp.Listen(ctx, func(event any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, own) && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
				w.outside = append(w.outside, u)
			}
		case *network.EventWebSocketCreated:
			if !strings.HasPrefix(e.URL, strings.Replace(own, "http", "ws", 1)) {
				w.outside = append(w.outside, e.URL)
			}
		case *runtime.EventExceptionThrown:
			w.problems = append(w.problems, thrown(e.ExceptionDetails))
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				w.problems = append(w.problems, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	})
}

// thrown is what an exception says.
func thrown(e *runtime.ExceptionDetails) string {
	if e.Exception == nil {
		return e.Text
	}
	return e.Text + " " + e.Exception.Description
}

// serve runs the explorer over the test schema.
func serve(t *testing.T) string {
	t.Helper()
	h, err := transport.New(transport.Config{
		Schema: (&transporttest.Resolvers{}).Schema(), Authenticator: &transporttest.Tokens{}, Introspection: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/graphql", h)
	mux.Handle("/", page(t, explorer.Config{Example: example, People: []explorer.Person{
		{Name: "grace", Token: "good", Note: "member"}, {Name: "ada", Token: "ada", Note: "administrator"}, {Name: "mallory", Token: "bad"},
	}}))
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = h.Close(ctx)
	})
	return server.URL
}

// response reads all of an editor's text, which the page shows in lines.
const response = `[...document.querySelectorAll('.result-window .view-line')].map(l => l.innerText).join('\n')`

// written is the text of the editor that queries are written in. The button is
// there before the editor is, and does nothing then.
const written = `[...document.querySelectorAll('.graphiql-query-editor .view-line')].map(l => l.innerText).join('\n')`

type step = chromedp.Action[chromedp.Void]

func shows(texts ...string) step { return holds(response, texts...) }

func holds(editor string, texts ...string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		var last string
		for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			text, err := chromedp.Evaluate[string](editor)(ctx, t)
			if err != nil {
				return err
			}
			last = strings.ReplaceAll(text, "\u00a0", " ")
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(last, text) }) {
				return nil
			}
		}
		return errors.New("the editor shows: " + last)
	})
}

const execute = chromedp.CSS(".graphiql-execute-button")

// run presses the button and picks the operation from its menu.
func run(operation string) step {
	item := `//*[@role="menuitem" and contains(., "` + operation + `")]`
	// The page is made anew behind the button now and then, and the click is lost.
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) (err error) {
		for range 10 {
			opened, cancel := context.WithTimeout(ctx, 3*time.Second)
			err = chromedp.Do(opened, chromedp.Steps(chromedp.Click(execute), chromedp.WaitVisible(item), chromedp.Click(item)))
			cancel()
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
		return err
	})
}

func choose(person string) step {
	return chromedp.Steps(
		// React listens to the event, so it has to come with the change.
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := chromedp.Evaluate[bool](`(() => {
				const s = document.querySelector('#tallyard-person');
				Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, 'value').set.call(s, '`+person+`');
				return s.dispatchEvent(new Event('change', { bubbles: true }));
			})()`)(ctx, t)
			return err
		}),
		chromedp.Sleep(500*time.Millisecond), // the page is built anew
		chromedp.WaitVisible(execute), holds(written, "query Example"),
	)
}

// G17: the explorer works with the network cut: it opens with an example that
// runs, subscriptions arrive, and the chosen person is who asks.
func TestTheExplorerWorksInABrowserWithoutNetwork(t *testing.T) {
	url := serve(t)
	ctx := browser(t)
	if err := chromedp.Do(ctx, enable()); err != nil {
		t.Fatal(err)
	}
	w := &watched{}
	if err := w.listen(ctx, url); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		name string
		do   step
	}{
		{"open", chromedp.Steps(chromedp.Navigate(url+"/"), chromedp.WaitVisible(execute), holds(written, "query Example"))},
		{"run the example", chromedp.Steps(run("Example"), shows(`"whoAmI": "good"`, `"hello": "Hello, explorer"`))},
		{"subscribe", chromedp.Steps(run("Live"), shows(`"count": 3`))},
		{"ask as ada", chromedp.Steps(choose("ada"), run("Example"), shows(`"whoAmI": "ada"`))},
		{"subscribe as ada", chromedp.Steps(run("Live"), shows(`"count": 3`))},
		{"ask as nobody", chromedp.Steps(choose("mallory"), run("Example"), shows(`"UNAUTHENTICATED"`))},
		{"subscribe as nobody", chromedp.Steps(run("Live"), shows(`4403`))},
	} {
		err := chromedp.Do(ctx, s.do)
		keep(ctx, t, s.name)
		if err != nil {
			w.mu.Lock()
			t.Fatalf("%s: %v; the page said: %q", s.name, err, w.problems)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.outside) > 0 {
		t.Errorf("the page asked outside for %q", w.outside)
	}
	for _, problem := range w.problems {
		// mallory's 401 is wanted; an editor that is taken away cancels what it
		// waited for, and says so as an exception.
		if !strings.Contains(problem, "401") && !strings.Contains(problem, "Canceled: Canceled") {
			t.Errorf("the page complained: %q", problem)
		}
	}
}

func enable() step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, log.Enable, cdp.Empty{})
		return err
	})
}

// keep saves a picture when somebody asked for it: EXPLORER_PICTURES=folder.
func keep(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("EXPLORER_PICTURES")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}
