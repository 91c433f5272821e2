package postgres_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
)

// childDir makes the test binary run a cluster in this directory instead of
// the tests: a program to be killed.
const childDir = "TALLYARD_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(runChild(dir))
	}
	pgtest.Main(m)
}

// runChild runs a cluster as the program does, with everything synced, says
// "ready" and waits to be told to stop.
func runChild(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := postgres.StartCluster(ctx, postgres.ClusterConfig{Dir: dir})
	if err != nil {
		println("child:", err.Error())
		return 1
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	os.Stdout.WriteString("ready\n")
	<-stop
	if err := c.Stop(ctx); err != nil {
		println("child:", err.Error())
		return 1
	}
	return 0
}
