package pgtest

// Sweep is what a later test binary does first.
var Sweep = sweep

// Start starts the cluster outside a test.
func Start() (dir string, pid int, err error) {
	if err := start(); err != nil {
		return "", 0, err
	}
	return shared.dir, shared.cluster.PID(), nil
}
