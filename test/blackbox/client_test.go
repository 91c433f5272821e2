package blackbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// client is one person's way to a program.
type client struct {
	t     *testing.T
	p     *program
	token string
}

// as gives the shared program's client of a person of the development mode.
func as(t *testing.T, login string) client { return client{t, shared, "dev-" + login} }

type vars = map[string]any

// value is a piece of an answer, read by paths such as "nodes.0.name".
type value struct{ v any }

// at reads a piece; what is not there is null.
func (v value) at(path string) value {
	for part := range strings.SplitSeq(path, ".") {
		switch x := v.v.(type) {
		case map[string]any:
			v.v = x[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(x) {
				return value{}
			}
			v.v = x[i]
		default:
			return value{}
		}
	}
	return v
}

// str reads a text, a number or a boolean as text; null is "".
func (v value) str(path string) string {
	switch x := v.at(path).v.(type) {
	case nil:
		return ""
	case string:
		return x
	default:
		b, _ := json.Marshal(x) // it came out of JSON
		return string(b)
	}
}

func (v value) list(path string) []value {
	items, _ := v.at(path).v.([]any)
	out := make([]value, len(items))
	for i, item := range items {
		out[i] = value{item}
	}
	return out
}

// strs reads one piece of every item of a list.
func (v value) strs(list, path string) []string {
	var out []string
	for _, item := range v.list(list) {
		out = append(out, item.str(path))
	}
	return out
}

func (v value) String() string {
	b, _ := json.Marshal(v.v) // it came out of JSON
	return string(b)
}

// reply is an answer to a request.
type reply struct {
	status int
	body   []byte
	value  // of data
	errors []value
}

// code is the code of the first error of the request, or "".
func (r reply) code() string {
	if len(r.errors) == 0 {
		return ""
	}
	return r.errors[0].str("extensions.code")
}

// send asks and gives back whatever comes.
func (c client) send(document string, v vars) reply {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"query": document, "variables": v})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.post(body)
}

func (c client) post(body []byte) reply {
	c.t.Helper()
	r, err := c.try(body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// try is post for goroutines beside the test's own.
func (c client) try(body []byte) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.p.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "blackbox/1")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	r := reply{status: resp.StatusCode}
	if r.body, err = io.ReadAll(resp.Body); err != nil {
		return r, err
	}
	var out struct {
		Data   any
		Errors []any
	}
	if err := json.Unmarshal(r.body, &out); err != nil {
		return r, fmt.Errorf("%d %s: %w", r.status, r.body, err)
	}
	r.value = value{out.Data}
	for _, e := range out.Errors {
		r.errors = append(r.errors, value{e})
	}
	return r, nil
}

// ask sends what must be answered without an error of the request.
func (c client) ask(document string, v vars) value {
	c.t.Helper()
	r := c.send(document, v)
	if len(r.errors) > 0 {
		c.t.Fatalf("%s\n%s as %s: %s", document, value{v}, c.token, r.body)
	}
	return r.value
}

// selections are what mutations answer with beside errors and receipt.
var selections = map[string]string{
	"setUserQuota": "user { id quota { cpuMillis memoryBytes accelerators { type count } } }",

	"transferOwnership": "moved fromUser { id } toUser { id }",
	"removeUser":        "user { id state loginName roles { role } }",
	"closeProject":      "project { id state version }",

	"createTenant":        "tenant { id name version }",
	"updateTenant":        "tenant { id name version }",
	"updateProject":       "project { id name description version }",
	"grantPermission":     "user { id permissions }",
	"revokePermission":    "user { id permissions }",
	"setBusinessScope":    "user { id businessScope }",
	"addProjectMember":    "project { id } user { id roles { role project { id } } }",
	"changeProjectRole":   "project { id } user { id roles { role project { id } } }",
	"removeProjectMember": "project { id } user { id roles { role project { id } } }",
	"erasePersonalData":   "user { id state loginName displayName email }",
	"updateSettings":      "settings { id scope version modelPublishingEnabled { value setIn } globalAlgorithmApprovalRequired { value setIn } approvalExpiryDays { value setIn } }",

	"createAlgorithm":         "algorithm { id version } algorithmVersion { id version state operation { id } }",
	"createAlgorithmVersion":  "algorithmVersion { id version state operation { id } }",
	"updateAlgorithmVersion":  "algorithmVersion { id version state operation { id } " + settings + " }",
	"publishAlgorithmVersion": "algorithmVersion { id version state operation { id } }",
	"deleteAlgorithmVersion":  "deletedId algorithmVersion { id state }",
	"deleteAlgorithmVersions": "results { id deletedId " + refused + " }",
	"favoriteAlgorithm":       "algorithm { id viewerHasFavorited }",
	"unfavoriteAlgorithm":     "algorithm { id viewerHasFavorited }",
	"importModel":             "model { id name version } modelVersion { id number state visibility } ",
	"updateModelVersion":      "modelVersion { id version scenario description metrics { name value } }",
	"shareModels":             "results { id modelVersion { id visibility } " + refused + " }",
	"unshareModels":           "results { id modelVersion { id visibility } " + refused + " }",
	"deleteModels":            "results { id deletedId " + refused + " }",
	"approveRequest":          "approval { id state }",
	"rejectRequest":           "approval { id state }",
	"withdrawRequest":         "approval { id state }",
	"retryOperation":          "operation { id state attempt }",
	"cancelOperation":         "operation { id state cancelRequested }",
	"dismissOperations":       "results { id operation { id state } " + refused + " }",
	"createDirectory":         "file { path kind }",
	"deleteFiles":             "results { path deleted operation { id kind } " + refused + " }",
	"registerDataSet":         dataSet,
	"updateDataSet":           dataSet,
	"deleteDataSet":           "deletedId",
	"cacheDataSet":            dataSet,
	"refreshDataSet":          dataSet,
	"unzipDataSet":            dataSet,
	"registerImage":           "registeredImage { id name kind framework scope acceleratorTypes deploymentTypes version }",
	"deleteImage":             "deletedId",
	"setStorageQuota":         "storageSpace { id version quotaBytes }",
	"createProject":           "project { id name }",
	"createUser":              "user { id loginName }",
	"grantRole":               "user { id }",
	"revokeRole":              "user { id }",
	"suspendUser":             "user { id state }",
	"reinstateUser":           "user { id state }",
	"createApiToken":          "token tokenId",
	"revokeApiToken":          "user { id }",
}

const (
	dataSet = `dataSet { id name description directory visibility fileCount sizeBytes version
		cache { ready step lastStep problem fileCount sizeBytes filledAt operation { id kind } } }`
	refused  = "userErrors { code message field details { name value } }"
	receipt  = "receipt { commandId position replayed pending }"
	settings = `description image { framework reference } source { command script { directory script } } parameters { name value }
	environment { name value } resources { workers servers cpuMillis memoryBytes accelerator { series type count } } deploymentType
	elastic { minWorkers maxWorkers } modelId`
)

// document is a mutation by its name.
func document(mutation string) string {
	return fmt.Sprintf("mutation M($input: %s!) { %s(input: $input) { %s %s %s } }",
		strings.ToUpper(mutation[:1])+mutation[1:]+"Input", mutation, selections[mutation], refused, receipt)
}

// attempt sends a command and gives its payload, refused or not.
func (c client) attempt(mutation string, input vars) value {
	c.t.Helper()
	return c.ask(document(mutation), vars{"input": input}).at(mutation)
}

// do sends a command that must not be refused.
func (c client) do(mutation string, input vars) value {
	c.t.Helper()
	got := c.attempt(mutation, input)
	if len(got.list("userErrors")) > 0 {
		c.t.Fatalf("%s %s as %s: %s", mutation, value{input}, c.token, got.at("userErrors"))
	}
	return got
}

// refuse sends a command that must be refused with the codes, in any order.
func (c client) refuse(mutation string, input vars, codes ...string) value {
	c.t.Helper()
	got := c.attempt(mutation, input)
	if have := got.strs("userErrors", "code"); !slices.Equal(slices.Sorted(slices.Values(have)), slices.Sorted(slices.Values(codes))) {
		c.t.Errorf("%s %s as %s: %s, want %v", mutation, value{input}, c.token, got.at("userErrors"), codes)
	}
	return got
}

// with adds to an input.
func with(input vars, more vars) vars {
	out := maps.Clone(input)
	maps.Copy(out, more)
	return out
}

// file sends or reads a file and returns the status and the body.
func (c client) file(method, path, content string) (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.p.url+"/files/"+path, strings.NewReader(content))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// remove deletes a directory of the person's home and waits until it is gone.
func (c client) remove(path string) {
	c.t.Helper()
	c.ends(c.do("deleteFiles", vars{"paths": []string{path}}).str("results.0.operation.id"), "SUCCEEDED")
}

// ends waits until an operation has come to its end, which must be the one that
// is wanted.
func (c client) ends(operation, state string) value {
	c.t.Helper()
	s := c.subscribe(`subscription($id: ID!) { operationEvents(filter: {operationId: $id}) { operation { id kind state doneFiles totalFiles error { code message } } } }`, vars{"id": operation})
	defer func() { _ = s.conn.CloseNow() }() // one socket for one wait
	items := s.until("an end of the operation", func(item value) bool {
		return slices.Contains([]string{"SUCCEEDED", "FAILED", "CANCELLED"}, item.str("operation.state"))
	})
	last := items[len(items)-1].at("operation")
	if last.str("state") != state {
		c.t.Fatalf("it ended as %s, want %s", last, state)
	}
	c.settled()
	return last
}

// upload puts a file into the person's home.
func (c client) upload(path, content string) {
	c.t.Helper()
	if status, body := c.file(http.MethodPut, "home/"+path, content); status/100 != 2 {
		c.t.Fatalf("upload of %s: %d %s", path, status, body)
	}
}
