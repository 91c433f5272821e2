package transport

import "testing"

// TestTooSlowWaitsForTheChannel: an item that was taken from a subscription may
// still wait for room. The cursor that the client is told lies behind it, so
// closing before it is written would lose it.
func TestTooSlowWaitsForTheChannel(t *testing.T) {
	t.Run("LIV-02_nothing_before_the_cursor_is_lost", func(t *testing.T) {
		for code, atOnce := range map[int]bool{CloseForbidden: true, CloseTooSlow: false} {
			closed := false
			op := &operation{close: func(*CloseError) { closed = true }}
			End(withOperation(t.Context(), op), &CloseError{Code: code})
			if closed != atOnce {
				t.Errorf("%d closed the socket at once: %t, want %t", code, closed, atOnce)
			}
			if op.ended() == nil {
				t.Errorf("%d: the operation does not know that it ended", code)
			}
		}
	})
}
