package blackbox_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// given is one input of the table: what it is in words, and what it changes in
// a valid createAlgorithm, or the whole input of another mutation.
type given struct {
	what     string
	mutation string
	input    func(w *world) vars
}

// name is a createAlgorithm with another name.
func name(what, value string) given {
	return create(what, vars{"name": value})
}

func create(what string, more vars) given {
	return given{what, "createAlgorithm", func(w *world) vars { return with(w.command(unique("in")), more) }}
}

func directory(what, path string) given {
	return given{what, "createDirectory", func(*world) vars { return vars{"path": path} }}
}

func script1(what, directory, script string) given {
	return create(what, vars{"source": vars{"script": vars{"directory": directory, "script": script}}})
}

var long = strings.Repeat("長", 10000)

var inputs = []struct {
	title string
	rows  []given
}{
	{"Names of algorithms", []given{
		name("`resnet_50`", "resnet_50"), name("Chinese, `图像分类`", "图像分类"), name("Japanese, `画像ぶんるい`", "画像ぶんるい"), name("one character, `猫`", "猫"),
		name("a letter with its accent apart (NFD)", "Chloe\u0308"), name("64 Chinese characters", strings.Repeat("長", 64)),
		name("65 Chinese characters", strings.Repeat("長", 65)), name("10,000 characters", long), name("empty", ""), name("only a space", " "),
		name("with a space, `a b`", "a b"), name("begins with underscore, `_a`", "_a"), name("hyphen, `a-b`", "a-b"), name("emoji, `🚀`", "🚀"),
		name("NUL inside", "a\x00b"), name("a line break inside", "a\nb"), name("an escape character", "a\x1bb"), name("right-to-left override", "a\u202eb"),
		name("zero-width no-break space", "\ufeffa"), name("a Hangul filler", "\u3164"), name("a variation selector behind a letter", "a\ufe0f"), name("an accent alone", "\u0308"),
		{"the NFD twin of a name that is there in NFC", "createAlgorithm", func(w *world) vars {
			w.create(w.command("Zo\u00eb"))
			return w.command("Zoe\u0308")
		}},
		{"the same name in another case", "createAlgorithm", func(w *world) vars {
			w.create(w.command("Same"))
			return w.command("same")
		}},
		create("null", vars{"name": nil}), create("a number", vars{"name": 5}),
	}},
	{"Labels of versions", []given{
		create("`1.0-rc_1`", vars{"label": "1.0-rc_1"}), create("32 characters", vars{"label": strings.Repeat("v", 32)}), create("33 characters", vars{"label": strings.Repeat("v", 33)}),
		create("empty", vars{"label": ""}), create("a slash", vars{"label": "1/2"}), create("Chinese", vars{"label": "第一版"}),
	}},
	{"Images, sources, parameters", []given{
		create("no image", vars{"image": nil}), create("an empty reference", vars{"image": vars{"reference": ""}}),
		create("a framework that is none", vars{"image": vars{"framework": "KERAS", "reference": "x"}}),
		create("no source", vars{"source": nil}), create("an empty command", vars{"source": vars{"command": ""}}),
		create("a command and a script", vars{"source": vars{"command": "x", "script": vars{"directory": "resnet", "script": "train.py"}}}),
		create("neither of them", vars{"source": vars{}}),
		create("a command of 4,097 characters", vars{"source": vars{"command": strings.Repeat("x", 4097)}}),
		create("a parameter given twice", vars{"parameters": []vars{{"name": "a", "value": "1"}, {"name": "a", "value": "2"}}}),
		create("a parameter without a name", vars{"parameters": []vars{{"name": "", "value": "1"}}}),
		create("an environment variable `1A`", vars{"environment": []vars{{"name": "1A", "value": "1"}}}),
		create("a description of 10,000 characters", vars{"description": long}), create("a description of two lines", vars{"description": "a\nb"}),
		create("a reason with a control character", vars{"reason": "a\x07"}), create("an empty idempotency key", vars{"idempotencyKey": ""}),
	}},
	{"Deployment and resources", []given{
		create("PS_WORKER with PyTorch", vars{"deploymentType": "PS_WORKER", "resources": vars{"workers": 2, "servers": 1}}),
		create("a deployment type that is none", vars{"deploymentType": "SWARM"}),
		create("1,501 workers", vars{"resources": vars{"workers": 1501}}), create("-1 workers", vars{"resources": vars{"workers": -1}}),
		create("2^31 workers", vars{"resources": vars{"workers": 2147483648}}), create("1.5 workers", vars{"resources": vars{"workers": 1.5}}), create("workers as text", vars{"resources": vars{"workers": "5"}}),
		create("memory of 2^53+1 bytes", vars{"resources": vars{"memoryBytes": "9007199254740993"}}), create("memory of text", vars{"resources": vars{"memoryBytes": "much"}}),
		create("elastic, at most fewer than at least", vars{"resources": vars{"workers": 4}, "elastic": vars{"minWorkers": 4, "maxWorkers": 2}}),
	}},
	{"Paths", []given{
		script1("a directory that is not there", "nothing", "train.py"), script1("a script that is not there", "resnet", "nothing.py"),
		script1("`..` out of the home", "../other", "train.py"), script1("an absolute directory", "/etc", "passwd"), script1("`..` in the script", "resnet", "../../x"),
		script1("a directory as the script", "resnet", "lib"), script1("empty", "", ""),
		directory("`a/b/c`", "a/b/c"), directory("Chinese, `数据`", "数据"), directory("empty", ""), directory("`.`", "."), directory("`a/../b`", "a/../b"), directory("`../b`", "../b"),
		directory("absolute, `/b`", "/b"), directory("`a//b`", "a//b"), directory("a backslash, `a\\b`", `a\b`), directory("NUL inside", "a\x00b"), directory("a line break inside", "a\nb"),
		directory("a name of 300 bytes", strings.Repeat("x", 300)), directory("10,000 characters", strings.Repeat("x/", 5000)),
		directory("where a file is", "resnet/train.py"),
	}},
	{"Publications", []given{
		publish("GLOBAL", "GLOBAL"), publish("a visibility that is not allowed, `PUBLIC`", "PUBLIC"), publish("no visibility", nil), publish("a visibility in small letters", "global"),
		{"a version that is published already", "publishAlgorithmVersion", func(w *world) vars {
			_, v := w.create(w.command(unique("in")))
			w.publish(v, "GROUP")
			return vars{"id": v, "visibility": "GROUP"}
		}},
	}},
	{"Ids", []given{
		{"empty", "deleteAlgorithmVersion", func(*world) vars { return vars{"id": ""} }},
		{"text that is no id", "deleteAlgorithmVersion", func(*world) vars { return vars{"id": "17"} }},
		{"the id of another kind of thing", "deleteAlgorithmVersion", func(w *world) vars { return vars{"id": w.project} }},
		{"a well-formed id of nothing", "favoriteAlgorithm", func(*world) vars { return vars{"id": "AQQBoi6GSH95JojceLUZ-vPB"} }},
		{"an id of 10,000 characters", "deleteAlgorithmVersion", func(*world) vars { return vars{"id": strings.Repeat("A", 10000)} }},
		{"101 ids", "deleteAlgorithmVersions", func(*world) vars { return vars{"ids": slices.Repeat([]string{"x"}, 101)} }},
		{"no ids", "deleteAlgorithmVersions", func(*world) vars { return vars{"ids": []string{}} }},
		{"a field that there is not", "favoriteAlgorithm", func(*world) vars { return vars{"id": "x", "colour": "red"} }},
	}},
	{"People", []given{
		{"a role that is none", "grantRole", func(w *world) vars { return vars{"userId": w.peerID, "role": "KING", "reason": "x"} }},
		{"a role without a reason", "grantRole", func(w *world) vars { return vars{"userId": w.peerID, "role": "AUDITOR", "reason": ""} }},
		{"a role of a project without one", "grantRole", func(w *world) vars { return vars{"userId": w.peerID, "role": "MEMBER", "reason": "x"} }},
		{"a login name with a space", "createUser", func(*world) vars { return vars{"loginName": "a b", "displayName": "A B"} }},
		{"a login name that is taken", "createUser", func(*world) vars { return vars{"loginName": "alice", "displayName": "A"} }},
		{"an e-mail address that is none", "createUser", func(*world) vars { return vars{"loginName": unique("in"), "displayName": "A", "email": "x"} }},
		{"a token that ended before it began", "createApiToken", func(*world) vars { return vars{"expiresAt": "2007-01-01T00:00:00Z"} }},
		{"a token for ten years", "createApiToken", func(*world) vars { return vars{"expiresAt": "2099-01-01T00:00:00Z"} }},
		{"a time that is none", "createApiToken", func(*world) vars { return vars{"expiresAt": "tomorrow"} }},
		{"a time that is not in UTC", "createApiToken", func(*world) vars { return vars{"expiresAt": strings.Replace(soon(), "Z", "+08:00", 1)} }},
	}},
}

func publish(what string, visibility any) given {
	return given{what, "publishAlgorithmVersion", func(w *world) vars {
		_, v := w.create(w.command(unique("in")))
		return vars{"id": v, "visibility": visibility}
	}}
}

// TestInputs makes docs/inputs.md of what the program answers.
func TestInputs(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What is accepted and what is refused\n\nMade by `test/blackbox` from the answers of the running program (`BLACKBOX_UPDATE=1` writes it anew).\n" +
		"A refusal of the whole request, before anything is done, is marked *request*; the others are `userErrors`.\n")
	for _, part := range inputs {
		fmt.Fprintf(&b, "\n## %s\n\n| input | mutation | code | field | message |\n| --- | --- | --- | --- | --- |\n", part.title)
		w := newWorld(t)
		for _, g := range part.rows {
			t.Run("GEN-05_"+strings.ReplaceAll(g.what, " ", "_"), func(t *testing.T) {
				w.t, w.owner.t, w.admin.t = t, t, t
				c := w.owner
				if part.title == "People" {
					c = w.admin
				}
				r := c.send(document(g.mutation), vars{"input": g.input(w)})
				for _, line := range answers(r, g.mutation) {
					fmt.Fprintf(&b, "| %s | %s | %s |\n", g.what, g.mutation, line)
				}
				if strings.Contains(string(r.body), "長長") {
					t.Error("the answer repeats the input")
				}
				if r.code() == "INTERNAL" {
					t.Errorf("%s", r.body)
				}
			})
		}
	}
	golden(t, filepath.Join("..", "..", "docs", "inputs.md"), b.String())
}

// answers are the rest of the table's lines for an answer.
func answers(r reply, mutation string) []string {
	var out []string
	line := func(code string, path value, message string) {
		var parts []string
		items, _ := path.v.([]any)
		for _, item := range items {
			parts = append(parts, fmt.Sprint(item))
		}
		out = append(out, fmt.Sprintf("%s | %s | %s", code, strings.Join(parts, "."), strings.ReplaceAll(message, "|", "\\|")))
	}
	for _, e := range r.errors {
		line(e.str("extensions.code")+" *request*", e.at("extensions.field"), e.str("message"))
	}
	for _, e := range append(r.list(mutation+".userErrors"), r.list(mutation+".results.0.userErrors")...) {
		line(e.str("code"), e.at("field"), e.str("message"))
	}
	if len(out) == 0 {
		out = []string{"accepted | | "}
	}
	return out
}
