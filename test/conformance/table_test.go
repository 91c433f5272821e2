package conformance

import "testing"

// check is one thing that the protocol promises, with the source that says so:
// a line of the contract (eventstore.md), a page of the server's documentation
// (docs:), or a test of the published Go client (client:).
type check struct {
	name, source string
	run          func(t *testing.T, n *node)
}

// TestProtocol tries the whole table, against the embedded server or a real node.
func TestProtocol(t *testing.T) {
	n := openNode(t)
	for name, table := range map[string][]check{
		"append": appending, "batch": batching, "read": reading, "subscribe": subscribing,
		"delete": deleting, "access": access, "groups": grouping,
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range table {
				if c.source == "" {
					t.Errorf("%s: no source", c.name)
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					defer func() {
						if t.Failed() {
							t.Log("says: " + c.source)
						}
					}()
					c.run(t, n)
				})
			}
		})
	}
}
