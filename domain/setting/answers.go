package setting

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// This file answers what other features ask, each by a port of its own. The
// answers come from the log: a change counts for the next command.

const day = 24 * time.Hour

// ModelPublishingEnabled tells whether models are published in a tenant at all.
func (h *Handler) ModelPublishingEnabled(ctx context.Context, tenant uuid.UUID) (bool, error) {
	v, err := h.value(ctx, tenant, OfTenant(tenant), ModelPublishingEnabled)
	return v.On(), err
}

// GlobalAlgorithmApprovalRequired tells whether publishing an algorithm of a
// project to the whole tenant waits for an approval.
func (h *Handler) GlobalAlgorithmApprovalRequired(ctx context.Context, tenant, project uuid.UUID) (bool, error) {
	v, err := h.value(ctx, tenant, OfProject(project), GlobalAlgorithmApprovalRequired)
	return v.On(), err
}

// ModelApprovalRequired tells whether publishing a model of a project waits for
// an approval.
func (h *Handler) ModelApprovalRequired(ctx context.Context, tenant, project uuid.UUID) (bool, error) {
	v, err := h.value(ctx, tenant, OfProject(project), ModelApprovalRequired)
	return v.On(), err
}

// ApprovalExpiry is how long a request for an approval may wait in a tenant.
func (h *Handler) ApprovalExpiry(ctx context.Context, tenant uuid.UUID) (time.Duration, error) {
	v, err := h.value(ctx, tenant, OfTenant(tenant), ApprovalExpiryDays)
	return time.Duration(v.Int()) * day, err
}

// ClientAddressRetention is how long the audit of a tenant keeps the addresses
// of clients; that of the platform for the nil tenant.
func (h *Handler) ClientAddressRetention(ctx context.Context, tenant uuid.UUID) (time.Duration, error) {
	t := OfTenant(tenant)
	if tenant == uuid.Nil {
		t = OfPlatform()
	}
	v, err := h.value(ctx, tenant, t, ClientAddressRetentionDays)
	return time.Duration(v.Int()) * day, err
}

func (h *Handler) value(ctx context.Context, tenant uuid.UUID, t Target, k Key) (Value, error) {
	l, err := h.Levels(ctx, tenant, t)
	if err != nil {
		return Value{}, err
	}
	return l.Effective(k).Value, nil
}
