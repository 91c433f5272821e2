package storage

import (
	"context"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	"tallyard/projections/page"
)

// homeName stands for the caller's own space in addresses of files.
const homeName = "home"

// place is a space as it was asked for.
type place struct {
	tenant, space uuid.UUID
	name          string // in addresses
}

// Files is the query files. A space that nothing was put in yet is empty.
func (a *API) Files(ctx context.Context, spaceID, path *string, args relay.Args) (*gqlmodel.FileConnection, error) {
	at, found, err := a.find(ctx, spaceID)
	if err != nil {
		return nil, err
	}
	folder, bad := storage.ParseFolder(gqlmodel.Deref(path))
	if bad != nil {
		return nil, bad.At("path")
	}
	list, err := relay.NewList(a.Sealer, at.tenant, "files", at.space, folder.String())
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	var rows page.Rows[Entry]
	show := func(Entry) *gqlmodel.File { return nil } // there is no row
	if found {
		if rows, err = a.rows(ctx, at, folder, p); err != nil {
			return nil, err
		}
		if show, err = a.show(ctx, at); err != nil {
			return nil, err
		}
	} else if !folder.IsRoot() {
		return nil, noDirectory()
	}
	c := &gqlmodel.FileConnection{}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows,
		func(e Entry) page.Key { return page.Key{Value: e.Key} }, show,
		func(cursor string, n *gqlmodel.File) *gqlmodel.FileEdge {
			return &gqlmodel.FileEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// find gives the space that the viewer asks for and may read in; false when it
// is their home and there is none yet.
func (a *API) find(ctx context.Context, spaceID *string) (place, bool, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return place{}, false, err
	}
	if spaceID == nil {
		id, ok, err := a.Handler.FindHome(ctx, v.Tenant, v.User())
		return place{v.Tenant, id, homeName}, ok, err
	}
	id, bad := relay.Expect(relay.StorageSpace, *spaceID, "spaceId")
	if bad != nil {
		return place{}, false, bad
	}
	_, err = a.Handler.Readable(ctx, v.Tenant, v.User(), id.UUID)
	return place{v.Tenant, id.UUID, id.String()}, true, atField(err, "spaceId")
}

func (a *API) rows(ctx context.Context, at place, folder storage.Path, p page.Page) (page.Rows[Entry], error) {
	after := ""
	if p.After != nil {
		after = p.After.Value
	}
	entries, more, err := a.Disk.List(ctx, at.tenant, at.space, folder, after, p.First)
	if folder.IsRoot() && fault.Is(err, fault.CodeNotFound) {
		return page.Rows[Entry]{}, nil // the space is in the log, the disk has nothing of it yet
	}
	return page.Rows[Entry]{Items: entries, HasNext: more, HasPrevious: p.After != nil}, atField(err, "path")
}

// show makes what turns the entries of a space into files.
func (a *API) show(ctx context.Context, at place) (func(Entry) *gqlmodel.File, error) {
	sources, err := a.Sources.SourcesIn(ctx, at.tenant, at.space)
	if err != nil {
		return nil, err
	}
	var shared []storage.Path
	for _, s := range sources {
		if p, bad := storage.ParsePath(s); bad == nil {
			shared = append(shared, p)
		}
	}
	return func(e Entry) *gqlmodel.File {
		f := &gqlmodel.File{Name: e.Name, Path: e.Path.String(), Kind: gqlmodel.FileKind(e.Kind), ModifiedAt: e.ModifiedAt}
		if e.Path.IsRoot() {
			f.Path = e.Name // it can be read, not asked for
			return f
		}
		for _, s := range shared {
			f.Shared = f.Shared || e.Path.Within(s)
		}
		if e.Kind == File {
			size, address := e.SizeBytes, at.address(e.Path)
			f.SizeBytes, f.URL = &size, &address
		}
		return f
	}, nil
}

// address is where a file is downloaded and uploaded.
func (p place) address(path storage.Path) string {
	names := path.Names()
	for i, n := range names {
		names[i] = url.PathEscape(n)
	}
	return "/files/" + p.name + "/" + strings.Join(names, "/")
}

func noDirectory() *fault.Fault {
	return fault.New(fault.NotFound, fault.CodeNotFound, "There is no such directory; check the path.").At("path")
}

// atField names the field of a fault that names none.
func atField(err error, field ...string) error {
	faults, ok := fault.All(err)
	if !ok {
		return err
	}
	list := make(fault.List, len(faults))
	for i, f := range faults {
		list[i] = f
		if len(f.Field) == 0 {
			list[i] = f.At(field...)
		}
	}
	return list
}
