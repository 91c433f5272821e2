package blackbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPages(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		w.create(w.command(unique("page")))
	}
	page := func(args string) reply {
		return w.owner.send(`query($p: ID!) { algorithms(filter: {projectId: $p}, `+args+`) { nodes { name } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`, vars{"p": w.project})
	}
	whole := page("first: 100, orderBy: {field: NAME, direction: ASC}").strs("algorithms.nodes", "name")
	t.Run("GEN-02_pages_make_the_whole_both_ways", func(t *testing.T) {
		for _, way := range []struct{ size, cursor, end, more string }{{"first", "after", "endCursor", "hasNextPage"}, {"last", "before", "startCursor", "hasPreviousPage"}} {
			var got []string
			cursor, more := "", "true"
			for more == "true" {
				args := fmt.Sprintf("%s: 2, orderBy: {field: NAME, direction: ASC}", way.size)
				if cursor != "" {
					args += fmt.Sprintf(`, %s: "%s"`, way.cursor, cursor)
				}
				r := page(args)
				names := r.strs("algorithms.nodes", "name")
				if way.size == "last" {
					got = append(names, got...)
				} else {
					got = append(got, names...)
				}
				cursor, more = r.str("algorithms.pageInfo."+way.end), r.str("algorithms.pageInfo."+way.more)
			}
			if len(whole) != 5 || !slices.Equal(got, whole) {
				t.Errorf("%s: %v, want %v", way.size, got, whole)
			}
		}
	})
	t.Run("GEN-02_a_cursor_stays_valid_while_rows_come_and_go", func(t *testing.T) {
		first := page("first: 2, orderBy: {field: CREATED_AT, direction: DESC}")
		rest := page("first: 100, orderBy: {field: CREATED_AT, direction: DESC}").strs("algorithms.nodes", "name")[2:]
		w.create(w.command(unique("page")))
		got := page(fmt.Sprintf(`first: 100, orderBy: {field: CREATED_AT, direction: DESC}, after: "%s"`, first.str("algorithms.pageInfo.endCursor"))).strs("algorithms.nodes", "name")
		if !slices.Equal(got, rest) {
			t.Errorf("%v, want %v", got, rest)
		}
	})
	cursor := page("first: 1").str("algorithms.edges.0.cursor")
	for _, c := range []struct{ name, args, code string }{
		{"another_order", `orderBy: {field: NAME, direction: ASC}, after: "` + cursor + `"`, "CURSOR_INVALID"},
		{"a_bent_cursor", `after: "` + cursor[:len(cursor)-2] + `AA"`, "CURSOR_INVALID"},
		{"no_cursor", `after: "x"`, "CURSOR_INVALID"},
		{"none", "first: 0", "LIMIT_EXCEEDED"},
		{"101", "first: 101", "LIMIT_EXCEEDED"},
		{"minus", "last: -1", "LIMIT_EXCEEDED"},
		{"both", "first: 1, last: 1", "BAD_REQUEST"},
	} {
		t.Run("GEN-02_"+c.name, func(t *testing.T) {
			if r := page(c.args); r.code() != c.code {
				t.Errorf("%s, want %s", r.body, c.code)
			}
		})
	}
	t.Run("GEN-02_another_filter", func(t *testing.T) {
		if r := w.owner.send(`query($c: String) { algorithms(after: $c) { nodes { id } } }`, vars{"c": cursor}); r.code() != "CURSOR_INVALID" {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("GEN-02_a_nested_list_wants_its_size", func(t *testing.T) {
		if r := w.owner.send(`{ algorithms { nodes { versions { nodes { id } } } } }`, nil); r.code() != "BAD_REQUEST" {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("GEN-02_twenty_by_default", func(t *testing.T) {
		for range 16 {
			w.create(w.command(unique("page")))
		}
		if r := page(`orderBy: {field: UPDATED_AT, direction: DESC}`); len(r.list("algorithms.nodes")) != 20 || r.str("algorithms.pageInfo.hasNextPage") != "true" {
			t.Errorf("%d rows", len(r.list("algorithms.nodes")))
		}
	})
}

func TestVersions(t *testing.T) {
	w := newWorld(t)
	_, version := w.create(w.command(unique("ver")))
	t.Run("GEN-04_the_second_is_refused_and_told", func(t *testing.T) {
		w.owner.do("updateAlgorithmVersion", vars{"id": version, "description": "one", "expectedVersion": 1})
		got := w.admin.refuse("updateAlgorithmVersion", vars{"id": version, "description": "two", "expectedVersion": 1}, "VERSION_CONFLICT")
		if d := got.at("userErrors.0.details"); d.String() != `[{"name":"currentVersion","value":"2"}]` {
			t.Errorf("%s", d)
		}
	})
	for _, mutation := range []string{"publishAlgorithmVersion", "deleteAlgorithmVersion"} {
		t.Run("GEN-04_"+mutation, func(t *testing.T) {
			in := vars{"id": version, "expectedVersion": 1}
			if mutation == "publishAlgorithmVersion" {
				in["visibility"] = "GROUP"
			}
			w.owner.refuse(mutation, in, "VERSION_CONFLICT")
		})
	}
}

// TestOmitted gives every optional field of the update no value, null and a
// value (G12). A field of the schema without a line here fails.
func TestOmitted(t *testing.T) {
	w := newWorld(t)
	start := with(w.command(unique("omit")), vars{
		"description": "start", "parameters": []vars{{"name": "a", "value": "1"}}, "environment": []vars{{"name": "E", "value": "1"}},
		"resources": vars{"workers": 4, "cpuMillis": 2000}, "deploymentType": "MASTER_WORKER", "elastic": vars{"minWorkers": 2, "maxWorkers": 4},
	})
	cases := map[string]struct {
		value any
		null  string // the field after null, or the code of the refusal
		after string // the field after the value
	}{
		"description":    {"next", `""`, `"next"`},
		"image":          {vars{"framework": "PYTORCH", "reference": "pytorch:2.7"}, "NOT_CLEARABLE", `{"framework":"PYTORCH","reference":"pytorch:2.7"}`},
		"source":         {vars{"command": "make"}, "NOT_CLEARABLE", `{"command":"make","script":null}`},
		"parameters":     {[]vars{{"name": "b", "value": ""}}, `[]`, `[{"name":"b","value":""}]`},
		"environment":    {[]vars{}, `[]`, `[]`},
		"resources":      {vars{"workers": 5}, "NOT_CLEARABLE", `{"accelerator":null,"cpuMillis":0,"memoryBytes":"0","servers":0,"workers":5}`},
		"deploymentType": {"MPI", `"MASTER_WORKER"`, `"MPI"`},
		"elastic":        {vars{"minWorkers": 1, "maxWorkers": 3}, `null`, `{"maxWorkers":3,"minWorkers":1}`},
		"modelId":        {"AQUBoi6GSH95Jojc", `null`, "NOT_FOUND"},
	}
	others := map[string]bool{"id": true, "basedOnId": true, "expectedVersion": true, "reason": true, "idempotencyKey": true}
	fields := w.owner.ask(`{ __type(name: "UpdateAlgorithmVersionInput") { inputFields { name } } }`, nil).strs("__type.inputFields", "name")
	read := func(version string) value {
		return w.owner.ask(`query($id: ID!) { algorithmVersion(id: $id) { `+settings+` } }`, vars{"id": version}).at("algorithmVersion")
	}
	for _, field := range fields {
		c, known := cases[field]
		if !known {
			if !others[field] {
				t.Errorf("the field %s has no case here", field)
			}
			continue
		}
		t.Run("G12_"+field, func(t *testing.T) {
			_, version := w.create(with(start, vars{"name": unique("omit")}))
			before := read(version)
			check := func(what string, given any, want string) {
				t.Helper()
				got := w.owner.attempt("updateAlgorithmVersion", vars{"id": version, field: given})
				if want == strings.ToUpper(want) && !strings.ContainsAny(want, `"[{`) {
					if code := got.str("userErrors.0.code"); code != want || got.str("userErrors.0.field.0") != field {
						t.Errorf("%s: %s, want %s", what, got.at("userErrors"), want)
					}
				} else if now := read(version).at(field).String(); now != want {
					t.Errorf("%s: %s, want %s; %s", what, now, want, got.at("userErrors"))
				}
			}
			w.owner.do("updateAlgorithmVersion", vars{"id": version, "reason": "nothing is given"})
			if after := read(version); after.String() != before.String() {
				t.Errorf("absent: %s, want %s", after, before)
			}
			check("value", c.value, c.after)
			check("null", nil, c.null)
		})
	}
}

func TestReceipts(t *testing.T) {
	w := newWorld(t)
	t.Run("GEN-06_the_next_query_sees_the_effect", func(t *testing.T) {
		for range 20 {
			name := unique("see")
			got := w.owner.do("createAlgorithm", w.command(name))
			if got.str("receipt.pending") == "false" && !w.owner.lists(nil, name) {
				t.Errorf("%s is not in the list", name)
			}
			r := w.owner.ask(`query($at: Position, $p: ID!) { algorithms(filter: {projectId: $p}, first: 1, atLeast: $at) { nodes { name } } }`,
				vars{"at": got.str("receipt.position"), "p": w.project})
			if r.str("algorithms.nodes.0.name") != name {
				t.Errorf("with atLeast: %s", r)
			}
		}
	})
	t.Run("GEN-06_a_position_of_none", func(t *testing.T) {
		r := w.owner.send(`{ algorithms(atLeast: "12") { nodes { id } } }`, nil)
		if r.code() != "BAD_REQUEST" {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("GEN-05_a_refusal_has_code_sentence_and_path", func(t *testing.T) {
		got := w.owner.attempt("createAlgorithm", with(w.command("a b"), vars{"label": "a b", "image": vars{"reference": ""}}))
		for _, e := range got.list("userErrors") {
			if e.str("code") == "" || e.at("field").v == nil || !strings.HasSuffix(e.str("message"), ".") {
				t.Errorf("%s", e)
			}
		}
		if len(got.list("userErrors")) != 3 {
			t.Errorf("all faults come at once: %s", got.at("userErrors"))
		}
	})
}
