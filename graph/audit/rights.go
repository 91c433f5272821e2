package audit

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	proj "tallyard/projections/audit"
)

// Things tells what the viewer of a context sees.
type Things interface {
	Sees(ctx context.Context, id relay.ID) (bool, error)
	// Cut tells what of the audit of something that they see is kept from the
	// viewer: they may not see all that is inside of it.
	Cut(ctx context.Context, id relay.ID) (proj.Cut, error)
}

// may tells whether the viewer may read an entry (AUD-02), and what of its
// thing's audit is kept from them.
func (a *API) may(ctx context.Context, v authn.Viewer, e proj.Entry) (bool, proj.Cut, error) {
	if readsWhole(v, e.Tenant) || e.Actor.User == v.User() {
		return true, proj.Cut{}, nil
	}
	id := relay.OfRef(e.Subject)
	if id == nil {
		return false, proj.Cut{}, nil
	}
	parsed, _ := relay.Parse(*id)
	sees, cut, err := a.sees(ctx, parsed)
	return sees && cut.Shows(e), cut, err
}

// readsWhole tells whether the viewer reads all that is on record in a tenant,
// their own or the platform's.
func readsWhole(v authn.Viewer, tenant uuid.UUID) bool {
	if tenant == es.PlatformTenant {
		return v.Grants.ReadsPlatform()
	}
	return v.Grants.ReadsAudit()
}

func (a *API) sees(ctx context.Context, id relay.ID) (sees bool, cut proj.Cut, err error) {
	if sees, err = a.Things.Sees(ctx, id); err != nil || !sees {
		return false, cut, err
	}
	cut, err = a.Things.Cut(ctx, id)
	return err == nil, cut, err
}

// filter reads the filter and refuses one that would show what the viewer may
// not read.
func (a *API) filter(ctx context.Context, v authn.Viewer, in *gqlmodel.AuditFilter) (proj.Filter, error) {
	if in == nil {
		in = &gqlmodel.AuditFilter{}
	}
	f, subject, err := read(v, in)
	if err != nil {
		return f, err
	}
	return f, a.permit(ctx, v, subject, &f)
}

// permit cuts a filter to what the viewer may read of what it asks for.
func (a *API) permit(ctx context.Context, v authn.Viewer, subject relay.ID, f *proj.Filter) error {
	whole, own := readsWhole(v, f.Tenant), f.Actor == v.User()
	if subject.UUID != uuid.Nil && (subject.Kind == relay.Tenant || (!whole && !own)) {
		sees, cut, err := a.sees(ctx, subject)
		switch {
		case err != nil:
			return err
		case sees:
			// What happens to a tenant is on record with the platform, what its
			// people are refused to do to it is with them.
			f.Platform = subject.Kind == relay.Tenant && f.Tenant != es.PlatformTenant
			if !whole && !own {
				f.Cut = cut
			}
			return nil
		case !whole && !own:
			return access.Missing().At("filter", "subjectId")
		}
	}
	switch {
	case whole:
		return nil
	case own:
		return a.inSight(ctx, f.Project)
	case f.Tenant == es.PlatformTenant:
		return fault.New(fault.Forbidden, fault.CodeForbidden,
			"The platform's audit is for operators; leave platform out, or give your own id as actorId.")
	}
	return fault.New(fault.Forbidden, fault.CodeForbidden,
		"The whole tenant's audit is for auditors and tenant admins; give subjectId for a thing that you see, or your own id as actorId.")
}

// inSight refuses a project that the viewer does not see: their own entries
// would tell which things are in it.
func (a *API) inSight(ctx context.Context, project uuid.UUID) error {
	if project == uuid.Nil {
		return nil
	}
	sees, err := a.Things.Sees(ctx, relay.ID{Kind: relay.Project, UUID: project})
	if err == nil && !sees {
		return access.Missing().At("filter", "projectId")
	}
	return err
}

// read reads what a filter asks for.
func read(v authn.Viewer, in *gqlmodel.AuditFilter) (proj.Filter, relay.ID, error) {
	f := proj.Filter{Tenant: v.Tenant}
	if gqlmodel.Deref(in.Platform.Value()) {
		f.Tenant = es.PlatformTenant
	}
	var faults fault.List
	subject := relay.OptionalID(0, in.SubjectID.Value(), &faults, "filter", "subjectId")
	f.Subject = subject.UUID
	f.Actor = relay.OptionalID(relay.User, in.ActorID.Value(), &faults, "filter", "actorId").UUID
	f.Project = relay.OptionalID(relay.Project, in.ProjectID.Value(), &faults, "filter", "projectId").UUID
	f.Actions = in.Actions.Value()
	for _, o := range in.Outcomes.Value() {
		f.Outcomes = append(f.Outcomes, proj.Outcome(o))
	}
	f.From, f.To = gqlmodel.Deref(in.From.Value()), gqlmodel.Deref(in.To.Value())
	if s := in.Search.Value(); s != nil {
		clean, bad := text.Line(0, 100).Clean(*s, "filter", "search")
		faults.Add(bad)
		f.Search = clean
	}
	f.Persons = gqlmodel.Deref(in.PersonsOnly.Value())
	return f, subject, faults.Err()
}
