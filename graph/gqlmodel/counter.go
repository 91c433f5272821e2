package gqlmodel

import "context"

// Counter counts the rows of a whole list; it is only called when the count is asked for.
type Counter func(ctx context.Context) (int, error)
