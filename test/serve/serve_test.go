package serve

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"tallyard/test/program"
)

// version is a version as the session looks at it.
type version struct {
	ID, State string
	Problem   *string
	FileCount *string
	FileBytes *string
	Algorithm struct{ ID string }
	Operation *struct {
		State     string
		Attempt   int
		DoneFiles *string
	}
}

const versionFields = `{id state problem fileCount fileBytes algorithm {id} operation {state attempt doneFiles}}`

// TestRolesInProcessesOfTheirOwn runs a session through an installation of
// three processes, two of which reach the event store over TCP, and kills the
// projector that leads and the worker that copies.
func TestRolesInProcessesOfTheirOwn(t *testing.T) {
	s := newSite(t)
	projector := s.serve("projector", s.overTCP)
	api := s.serve("api", s.overTCP)
	worker := s.serve("worker", s.local, "--copy-rate", fmt.Sprint(1<<20)) // a minute and more for the copy below
	token := strings.TrimSpace(s.command("bootstrap", "--tenant", "acme", "--project", "vision", "--login", "ada", "--name", "Ada Example"))
	again := strings.TrimSpace(s.command("bootstrap", "--tenant", "acme", "--project", "vision", "--login", "ada", "--name", "Ada Example"))
	if token == again || token == "" {
		t.Fatalf("two set-ups gave the tokens %q and %q", token, again)
	}
	s.client = api.Client(token)

	var projects struct {
		Projects struct{ Nodes []struct{ ID, Name string } }
	}
	s.eventually("the project is seen", func() bool {
		s.do(`{projects(first: 10) {nodes {id name}}}`, nil, &projects)
		return len(projects.Projects.Nodes) == 1
	})
	project := projects.Projects.Nodes[0].ID

	const files = 41
	s.put("resnet/train.py", "print('epoch 1')\n")
	for i := range files - 1 {
		s.put(fmt.Sprintf("resnet/data/part-%03d", i), strings.Repeat(fmt.Sprintf("%03d ", i), 512<<10))
	}
	made := s.create(project)
	if made.State != "CREATED" {
		t.Fatalf("%+v", made)
	}

	if published := s.publish(made.ID); published.State != "PUBLISHING" {
		t.Fatalf("%+v", published)
	}
	var v version
	s.eventually("the copy has begun", func() bool {
		v = s.version(made.ID)
		return v.State != "PUBLISHING" || v.Operation != nil && v.Operation.DoneFiles != nil && *v.Operation.DoneFiles != "0"
	})
	worker.Kill()
	v = s.version(made.ID)
	t.Logf("worker killed: version %s, %s of %d files copied", v.State, text(v.Operation.DoneFiles), files)
	t.Run("OPS-02_the_worker_is_killed_in_the_middle_of_the_copy", func(t *testing.T) {
		if done, err := strconv.Atoi(text(v.Operation.DoneFiles)); err != nil || v.State != "PUBLISHING" || v.Operation.State != "RUNNING" || done == 0 || done == files {
			t.Errorf("%s, operation %+v", v.State, *v.Operation)
		}
	})
	s.serve("worker", s.overTCP)
	took := s.eventually("another worker finishes the copy", func() bool {
		v = s.version(made.ID)
		return v.State == "PUBLISHED"
	})
	t.Logf("another worker: PUBLISHED %d ms after it was ready, %s files, %s bytes, attempt %d", took.Milliseconds(), text(v.FileCount), text(v.FileBytes), v.Operation.Attempt)
	t.Run("OPS-02_another_worker_goes_on_with_it_to_its_end", func(t *testing.T) {
		if text(v.FileCount) != fmt.Sprint(files) || v.Operation.Attempt != 1 {
			t.Errorf("%s files were published, not %d; attempt %d", text(v.FileCount), files, v.Operation.Attempt)
		}
	})

	second := s.begin("projector", s.local)
	s.await(second)
	projector.Kill()
	killed := time.Now()
	label := s.label(made.Algorithm.ID, "v2")
	s.eventually("the other projector shows a new version", func() bool {
		var data struct{ AlgorithmVersion *version }
		s.do(`query($id: ID!) {algorithmVersion(id: $id) {id}}`, map[string]any{"id": label}, &data)
		return data.AlgorithmVersion != nil
	})
	t.Logf("projector killed: a version written afterwards was shown by the other one %d ms after the kill", time.Since(killed).Milliseconds())
	third := s.begin("projector", s.overTCP)
	s.await(third)

	var report struct{ Equal bool }
	if out := s.command("projections", "verify", "--json"); json.Unmarshal([]byte(out), &report) != nil || !report.Equal {
		t.Errorf("verify: %s", out)
	}
	t.Logf("projections verify, asked of the api: equal %v\n%s", report.Equal, s.command("projections", "status"))
}

// label adds a version and gives its id as soon as the command is accepted.
func (s *site) label(algorithm, label string) string {
	s.t.Helper()
	var data struct {
		CreateAlgorithmVersion struct {
			AlgorithmVersion *version
			UserErrors       program.Problems
		}
	}
	s.do(`mutation($i: CreateAlgorithmVersionInput!) {createAlgorithmVersion(input: $i) {algorithmVersion {id} userErrors {code message}}}`,
		map[string]any{"i": map[string]any{
			"algorithmId": algorithm, "label": label, "image": map[string]any{"reference": "pytorch:2.6"},
			"source": map[string]any{"command": "python train.py"},
		}}, &data)
	if len(data.CreateAlgorithmVersion.UserErrors) > 0 || data.CreateAlgorithmVersion.AlgorithmVersion == nil {
		s.t.Fatalf("%+v", data)
	}
	return data.CreateAlgorithmVersion.AlgorithmVersion.ID
}

func (s *site) create(project string) version {
	s.t.Helper()
	var data struct {
		CreateAlgorithm struct {
			AlgorithmVersion *version
			UserErrors       program.Problems
		}
	}
	s.do(`mutation($i: CreateAlgorithmInput!) {createAlgorithm(input: $i) {algorithmVersion `+versionFields+` userErrors {code message}}}`,
		map[string]any{"i": map[string]any{
			"projectId": project, "name": "resnet", "label": "v1", "image": map[string]any{"reference": "pytorch:2.6"},
			"source": map[string]any{"script": map[string]any{"directory": "resnet", "script": "train.py"}},
		}}, &data)
	if len(data.CreateAlgorithm.UserErrors) > 0 || data.CreateAlgorithm.AlgorithmVersion == nil {
		s.t.Fatalf("%+v", data)
	}
	return *data.CreateAlgorithm.AlgorithmVersion
}

func (s *site) publish(id string) version {
	s.t.Helper()
	var data struct {
		PublishAlgorithmVersion struct {
			AlgorithmVersion *version
			UserErrors       program.Problems
		}
	}
	s.do(`mutation($i: PublishAlgorithmVersionInput!) {publishAlgorithmVersion(input: $i) {algorithmVersion `+versionFields+` userErrors {code message}}}`,
		map[string]any{"i": map[string]any{"id": id, "visibility": "GLOBAL"}}, &data)
	if len(data.PublishAlgorithmVersion.UserErrors) > 0 || data.PublishAlgorithmVersion.AlgorithmVersion == nil {
		s.t.Fatalf("%+v", data)
	}
	return *data.PublishAlgorithmVersion.AlgorithmVersion
}

func (s *site) version(id string) version {
	s.t.Helper()
	var data struct{ AlgorithmVersion *version }
	s.do(`query($id: ID!) {algorithmVersion(id: $id) `+versionFields+`}`, map[string]any{"id": id}, &data)
	if data.AlgorithmVersion == nil {
		s.t.Fatal("the version is not there")
	}
	return *data.AlgorithmVersion
}

func text(s *string) string {
	if s == nil {
		return "no"
	}
	return *s
}

// TestAdminSocketIsNotTakenFromAnotherProcess: two processes on one data
// directory would otherwise take the command line away from each other.
func TestAdminSocketIsNotTakenFromAnotherProcess(t *testing.T) {
	s := newSite(t)
	s.serve("api,projector", s.local)
	p, err := program.Start(s.path, "serve", "--roles", "worker", "--addr", "127.0.0.1:0", "--data-dir", s.data, "--master-key-file", s.key,
		"--eventstore", s.local, "--database", s.database, "--admin-socket", s.last)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if !strings.Contains(p.Output(), "give this one its own with --admin-socket") {
		t.Errorf("it ended with:\n%s", p.Output())
	}
	if out := s.command("projections", "status"); !strings.Contains(out, "running") {
		t.Error(out)
	}
}
