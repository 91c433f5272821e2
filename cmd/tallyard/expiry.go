package main

import (
	"context"
	"time"

	"tallyard/processes/expiry"
	projapproval "tallyard/projections/approval"
)

// expiry ends requests for an approval that nobody decided in time (APR-01).
func (p *parts) expiry() *expiry.Loop {
	approvals := projapproval.Queries{Reader: p.reader}
	return expiry.New(expiry.Config{
		Clock: p.domain.runtime.Clock, Every: time.Second, Expire: p.domain.approvals.Expire, Logger: p.logger,
		Due: func(ctx context.Context, now time.Time, limit int) ([]expiry.Ref, error) {
			rows, err := approvals.Due(ctx, now, limit)
			refs := make([]expiry.Ref, len(rows))
			for i, r := range rows {
				refs[i] = expiry.Ref(r)
			}
			return refs, err
		},
	})
}
