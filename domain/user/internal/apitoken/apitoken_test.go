package apitoken

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func FuzzParse(f *testing.F) {
	t, err := New(uuid.New(), uuid.New(), uuid.New(), bytes.NewReader(bytes.Repeat([]byte{0xfe}, 32)))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", Prefix, t.Text(), t.Text() + "\n", t.Text()[:50] + "\n" + t.Text()[50:], Prefix + strings.Repeat("A", 107), Prefix + strings.Repeat("_", 107)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := Parse(s); ok && got.Text() != s {
			t.Fatalf("%q reads as a token that is written %q", s, got.Text())
		}
	})
}

func TestToken(t *testing.T) {
	made, err := New(uuid.New(), uuid.New(), uuid.New(), bytes.NewReader(bytes.Repeat([]byte{0xfe}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	if read, ok := Parse(made.Text()); !ok || read != made || !bytes.Equal(read.Digest(), made.Digest()) {
		t.Fatalf("got %v, %v", read, ok)
	}
	if _, err := New(uuid.New(), uuid.New(), uuid.New(), bytes.NewReader(nil)); err == nil {
		t.Fatal("a token without a secret")
	}
}
