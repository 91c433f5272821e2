package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/setting"
	projsetting "tallyard/projections/setting"
)

// forgetAddresses drops clients' addresses that were kept long enough (AUD-06).
func (p *parts) forgetAddresses(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			n, err := p.forgetOnce(ctx, now)
			if err != nil && ctx.Err() == nil {
				p.logger.WarnContext(ctx, "old client addresses not dropped", "error", err)
			} else if n > 0 {
				p.logger.InfoContext(ctx, "old client addresses dropped", "count", n)
			}
		}
	}
}

// forgetOnce goes over the tenants that set a time of their own, then over all
// others.
func (p *parts) forgetOnce(ctx context.Context, now time.Time) (dropped int64, err error) {
	kept, err := projsetting.Queries{Reader: p.reader}.ByTenant(ctx, setting.ClientAddressRetentionDays)
	if err != nil {
		return 0, err
	}
	before := func(v setting.Value) time.Time { return now.AddDate(0, 0, -int(v.Int())) }
	rest, set := kept[uuid.Nil]
	if !set {
		rest = setting.Fallback(setting.ClientAddressRetentionDays)
	}
	delete(kept, uuid.Nil)
	own := make([]uuid.UUID, 0, len(kept))
	for tenant, days := range kept {
		own = append(own, tenant)
		n, err := p.origins.table.DeleteOf(ctx, tenant, before(days))
		if dropped += n; err != nil {
			return dropped, err
		}
	}
	n, err := p.origins.table.DeleteOthers(ctx, own, before(rest))
	return dropped + n, err
}
