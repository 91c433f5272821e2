package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
)

// serverLog takes what a server writes, hands it on line by line and keeps the
// last lines for the message of a failed start.
type serverLog struct {
	logger *slog.Logger
	quiet  atomic.Bool // refused connections are normal while it starts and stops

	mu   sync.Mutex
	part []byte
	tail []string
}

const tailLines = 12

// Write implements io.Writer.
func (w *serverLog) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part = append(w.part, b...)
	for {
		i := bytes.IndexByte(w.part, '\n')
		if i < 0 {
			break
		}
		w.line(strings.TrimSpace(string(w.part[:i])))
		w.part = w.part[i+1:]
	}
	if len(w.part) > 64<<10 { // a line without an end
		w.line(string(w.part))
		w.part = nil
	}
	return len(b), nil
}

func (w *serverLog) line(s string) {
	if s == "" {
		return
	}
	w.tail = append(w.tail, s)
	if len(w.tail) > tailLines {
		w.tail = w.tail[1:]
	}
	level := slog.LevelDebug
	switch {
	case strings.HasPrefix(s, "PANIC:"):
		level = slog.LevelError
	case strings.HasPrefix(s, "FATAL:") && !w.quiet.Load():
		level = slog.LevelWarn
	}
	w.logger.Log(context.Background(), level, "postgres says", "line", s)
}

// last returns the last lines as one text.
func (w *serverLog) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.tail
	if len(w.part) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(w.part))
	}
	return strings.Join(lines, "\n")
}
