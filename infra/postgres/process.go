package postgres

import (
	"os/exec"
	"runtime"
	"time"
)

// process is a child that does not outlive the program for long.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; read after done
}

// startProcess starts cmd from a thread that lives as long as the child: the
// kernel sends the parent-death signal when the *thread* that started the
// child ends, and Go ends threads as it likes.
func startProcess(cmd *exec.Cmd) (*process, error) {
	// Orphaned server processes keep the pipe open; don't wait for them for ever.
	cmd.WaitDelay = 2 * time.Second
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// ended waits for the end of the process, at most for d.
func (p *process) ended(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}
