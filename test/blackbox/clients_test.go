package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"tallyard/test/npm"
)

// G1
func TestAuditsOfGraphQLOverHTTP(t *testing.T) {
	dir := installed(t)
	out, err := npm.Run(t.Context(), dir, "audit-http.mjs", shared.url+"/graphql", "dev-alice")
	t.Log(out)
	if err != nil || out != "61 passed, 0 failed" {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGraphQLWSClient subscribes with the client that pages use.
func TestGraphQLWSClient(t *testing.T) {
	dir := installed(t)
	w := newWorld(t)
	algorithm, _ := w.create(w.command(unique("npm")))
	out, err := npm.Run(t.Context(), dir, "ws-client.mjs", shared.url+"/graphql", w.owner.token,
		fmt.Sprintf(`subscription { algorithmEvents(filter: {algorithmId: %q}) { kind algorithm { id } } }`, algorithm), "1")
	t.Log(out)
	if want := fmt.Sprintf(`{"data":{"algorithmEvents":{"kind":"SNAPSHOT","algorithm":{"id":%q}}}}`, algorithm); err != nil || out != want {
		t.Errorf("%v\n%s\nwant %s", err, out, want)
	}
	out, err = npm.Run(t.Context(), dir, "ws-client.mjs", shared.url+"/graphql", "dev-nobody", `{ me { user { id } } }`)
	if err == nil || !strings.Contains(out, `"closed":4403`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func installed(t *testing.T) string {
	t.Helper()
	dir, err := npm.Install(t.Context())
	if errors.Is(err, npm.ErrNoNode) && !npm.InCI() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// lineText is the text of one of the explorer's editors, which shows it in lines.
func lineText(editor string) string {
	return `[...document.querySelectorAll('` + editor + ` .view-line')].map(l => l.innerText).join('\n')`
}

const (
	query  = ".graphiql-query-editor"
	result = ".result-window"
)

const button = chromedp.CSS(".graphiql-execute-button")

type step = chromedp.Action[chromedp.Void]

// play presses the button and picks an operation of the example.
func play(operation string) step {
	item := `//*[@role="menuitem" and contains(., "` + operation + `")]`
	// The page is made anew behind the button now and then, and the click is lost.
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) (err error) {
		for range 10 {
			opened, cancel := context.WithTimeout(ctx, 3*time.Second)
			err = chromedp.Do(opened, chromedp.Steps(chromedp.Click(button), chromedp.WaitVisible(item), chromedp.Click(item)))
			cancel()
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
		return err
	})
}

// shown waits until an editor has a text.
func shown(editor, text string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		var last string
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			got, err := chromedp.Evaluate[string](lineText(editor))(ctx, t)
			if err != nil {
				return err
			}
			if last = strings.ReplaceAll(got, "\u00a0", " "); strings.Contains(last, text) {
				return nil
			}
		}
		return fmt.Errorf("no %s in: %s", text, last)
	})
}

// TestExplorer opens the page of the running program in a browser that reaches
// nothing else, runs the worked example and watches a live subscription. With
// EXPLORER_PICTURES=folder it keeps pictures.
func TestExplorer(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		missing := errors.New("chromium is missing; on Debian: apt-get install chromium")
		if npm.InCI() {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.WindowSize(1400, 900),
		chromedp.WSURLReadTimeout(time.Minute), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, flags...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	name := unique("seen_in_the_browser_")
	alice := as(t, "alice")
	project := alice.ask(`{ me { projects { id } } }`, nil).str("me.projects.0.id")
	add := func(context.Context, *chromedp.Target) error {
		alice.do("createAlgorithm", vars{"projectId": project, "name": name, "label": "v1", "image": vars{"reference": "x"}, "source": vars{"command": "x"}})
		return nil
	}
	for _, s := range []struct {
		name string
		do   step
	}{
		{"open", chromedp.Steps(chromedp.Navigate(shared.url+"/"), chromedp.WaitVisible(button), shown(query, "Welcome to Tallyard"))},
		{"look", chromedp.Steps(play("Look"), shown(result, `"loginName": "alice"`))},
		{"snapshot", chromedp.Steps(play("Watch"), shown(result, `"kind": "SNAPSHOT"`))},
		{"live", chromedp.Steps(chromedp.Func(add), shown(result, name))},
	} {
		err := chromedp.Do(ctx, s.do)
		picture(ctx, t, s.name)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
}

func picture(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("EXPLORER_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}
