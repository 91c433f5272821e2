package transport

import (
	"log/slog"
	"net/http"
	"time"
)

// NewServer makes an HTTP server that does not wait for ever: for headers, and
// for the next request on a connection. Bodies and answers have deadlines of
// their own in [Handler]; a timeout of the server for them would cut off what
// streams.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}
