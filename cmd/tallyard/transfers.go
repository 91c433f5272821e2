package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/storage"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/problem"
	"tallyard/graph/relay"
	"tallyard/graph/transport"
	"tallyard/infra/files"
)

// transfers is what files over HTTP need of the domain: the space in an
// address, and uploads on record.
type transfers struct {
	spaces  *storage.Handler
	disk    *files.Store
	origins origins
	clock   es.Clock
}

// uploadAction is the name of uploads in the audit.
const uploadAction = "uploadFile"

// Resolve implements the port of graph/transport/files. Who may not write is
// refused on record, as with every other command.
func (t transfers) Resolve(ctx context.Context, name string, write bool) (tenant, space uuid.UUID, err error) {
	defer func() { err = problem.Outage(err) }()
	v, err := authn.Must(ctx)
	if err != nil {
		return uuid.Nil, uuid.Nil, err
	}
	space, err = t.resolve(ctx, v, name, write)
	if _, refused := fault.All(err); refused && write {
		cmd, begun := t.begin(ctx)
		if begun != nil {
			return v.Tenant, space, errors.Join(err, begun)
		}
		_, err = command.Refuse[struct{}](ctx, t.spaces.Runtime, cmd, err)
	}
	if err != nil {
		return v.Tenant, space, err
	}
	return v.Tenant, space, t.disk.EnsureSpace(ctx, v.Tenant, space)
}

func (t transfers) resolve(ctx context.Context, v authn.Viewer, name string, write bool) (uuid.UUID, error) {
	if name != "home" {
		id, bad := relay.Expect(relay.StorageSpace, name)
		if bad != nil {
			return uuid.Nil, bad
		}
		rule := t.spaces.Readable
		if write {
			rule = t.spaces.Writable
		}
		_, err := rule(ctx, v.Tenant, v.User(), id.UUID)
		return id.UUID, err
	}
	if !write {
		id, found, err := t.spaces.FindHome(ctx, v.Tenant, v.User())
		if err == nil && !found {
			err = access.Missing()
		}
		return id, err
	}
	if !v.Grants.Writes() {
		return uuid.Nil, access.ReadOnly()
	}
	cmd := es.System(t.spaces.Runtime.IDs.New(), "storage", "createHome", v.Tenant)
	cmd.Request = transport.RequestInfoFrom(ctx).RequestID
	return t.spaces.Home(ctx, cmd, v.User())
}

// uploadSpace is the name space of the ids of uploads' commands.
var uploadSpace = uuid.MustParse("5d7c2f7e-0c0e-5f0e-8f5b-4b2f3c1a9d10")

// begin makes the command of a request that uploads, and records from where it
// came. The id follows from the request's, so that what is announced and what
// is done by one request is one line of the audit.
func (t transfers) begin(ctx context.Context) (es.Command, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return es.Command{}, err
	}
	info := transport.RequestInfoFrom(ctx)
	id, err := uuid.Parse(info.RequestID)
	if err != nil {
		return es.Command{}, fmt.Errorf("request without an id of ours: %w", err)
	}
	cmd := es.Command{
		ID: uuid.NewSHA1(uploadSpace, id[:]), Action: uploadAction, Tenant: v.Tenant, Actor: v.Actor,
		Request: info.RequestID, Correlation: t.spaces.Runtime.IDs.New(),
	}
	return cmd, t.origins.Record(ctx, id, v.Tenant, info.RemoteAddr, info.UserAgent, t.clock.Now())
}

// Announced implements the port of graph/transport/files.
func (t transfers) Announced(ctx context.Context, _, space uuid.UUID, p storage.Path) error {
	cmd, err := t.begin(ctx)
	if err != nil {
		return problem.Outage(err)
	}
	_, err = t.spaces.RequestUpload(ctx, cmd, space, p)
	return problem.Outage(err)
}

// Uploaded implements the port of graph/transport/files.
func (t transfers) Uploaded(ctx context.Context, _, space uuid.UUID, p storage.Path, size int64, sha256 []byte) error {
	cmd, err := t.begin(ctx)
	if err != nil {
		return problem.Outage(err)
	}
	_, err = t.spaces.RecordUpload(ctx, cmd, space, storage.Upload{Path: p, SizeBytes: size, SHA256: hex.EncodeToString(sha256)})
	return problem.Outage(err)
}

// Refused implements the port of graph/transport/files. A mishap is no refusal
// and passes through.
func (t transfers) Refused(ctx context.Context, _, space uuid.UUID, why error) error {
	if _, refused := fault.All(why); !refused {
		return why
	}
	cmd, err := t.begin(ctx)
	if err != nil {
		return problem.Outage(err)
	}
	cmd.Subject = es.Ref{Kind: storage.Category, ID: space}
	_, err = command.Refuse[struct{}](ctx, t.spaces.Runtime, cmd, why)
	return err
}
