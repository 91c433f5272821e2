package algorithm

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/text"
)

// newVersion gathers what a new version is made of and checks all of it at
// once: the input itself, the files, the published version it is based on.
func (h *Handler) newVersion(ctx context.Context, g access.Grants, id, operation, owner uuid.UUID, name string, in VersionInput, named bool) (newVersion, error) {
	var faults fault.List
	if named {
		clean, bad := text.Name.Clean(name, "name")
		faults.Add(bad)
		name = clean
	}
	label, bad := text.Label.Clean(in.Label, "label")
	faults.Add(bad)
	n := newVersion{id: id, operation: operation, label: label}

	base, err := h.template(ctx, g, in.BasedOn)
	if err := gather(&faults, err); err != nil {
		return n, err
	}
	if base != nil {
		n.settings, n.basedOn = base.v.Settings, base.origin()
		n.settings.Description = ""
	}
	// A base that can't be used is one fault: what it would have filled in is
	// not missing as well.
	unfilled := in.BasedOn != nil && base == nil
	if in.Source != nil || !unfilled {
		src, copyFrom, err := h.source(ctx, g.Tenant, owner, in.Source, base, h.free(name+"_"+label), len(faults) > 0)
		if err := gather(&faults, err); err != nil {
			return n, err
		}
		n.copyFrom = copyFrom
		if src != nil {
			in.Fields.Source = patch.To(*src)
		}
	}
	faults = append(faults, in.Fields.clean()...)
	if err := h.checkModel(ctx, g, in.Fields, &faults); err != nil {
		return n, err
	}
	n.settings = in.Fields.Apply(n.settings)
	if !unfilled && !hasFault(faults, "image") { // with a broken image the rest can't be judged
		faults = append(faults, checkSettings(&n.settings)...)
	}
	return n, faults.Err()
}

// edit gathers what an edit changes.
func (h *Handler) edit(ctx context.Context, g access.Grants, operation uuid.UUID, s State, v Version, in UpdateInput) (edit, error) {
	e := edit{ref: in.VersionRef, operation: operation, expected: in.Expected}
	var faults fault.List
	base, err := h.template(ctx, g, in.BasedOn)
	if err := gather(&faults, err); err != nil {
		return e, err
	}
	if base != nil {
		// A version that can't be edited is told so before a place for the copy is looked for.
		if err := mayEdit(v, Fields{}, true); err != nil {
			return e, err
		}
		e.origin = base.origin()
	}
	if in.Source != nil || base != nil {
		src, copyFrom, err := h.source(ctx, g.Tenant, s.Owner, in.Source, base, h.freeFor(s.Name+"_"+v.Label), len(faults) > 0)
		if err := gather(&faults, err); err != nil {
			return e, err
		}
		e.copyFrom = copyFrom
		if src != nil {
			in.Fields.Source = patch.To(*src)
		}
	}
	faults = append(faults, in.Fields.clean()...)
	if err := h.checkModel(ctx, g, in.Fields, &faults); err != nil {
		return e, err
	}
	e.fields = in.Fields
	return e, faults.Err()
}

// template loads the published version that another one is made from.
func (h *Handler) template(ctx context.Context, g access.Grants, ref *VersionRef) (*template, error) {
	if ref == nil {
		return nil, nil
	}
	l, err := es.Load(ctx, h.Runtime, Aggregate, g.Tenant, ref.Algorithm)
	if err != nil {
		return nil, err
	}
	v, ok := l.State.Version(ref.Version)
	if !ok || !g.Sees(l.State.Thing(v)) {
		return nil, access.Missing().At("basedOnId")
	}
	if v.Status != Published {
		return nil, fault.New(fault.State, fault.CodeInvalidState, "Only a published version can be the base of another one; publish it first.").At("basedOnId")
	}
	return &template{ref: *ref, state: l.State, v: v}, nil
}

// source resolves where the code comes from. With a published version that has
// files and no source of one's own, those files are copied into the owner's
// home at a place that target finds (ALG-03); else nothing is copied.
func (h *Handler) source(ctx context.Context, tenant, owner uuid.UUID, in *SourceInput, base *template, target place, broken bool) (*Source, uuid.UUID, error) {
	switch {
	case in != nil:
		if faults := in.clean(); len(faults) > 0 {
			return nil, uuid.Nil, faults
		}
		if in.Command != "" {
			return &Source{Command: in.Command}, uuid.Nil, nil
		}
		script, err := h.Directories.Script(ctx, tenant, owner, in.Directory, in.Script)
		if err != nil {
			return nil, uuid.Nil, err
		}
		return &Source{Script: &script}, uuid.Nil, nil
	case base == nil:
		return nil, uuid.Nil, fault.New(fault.Invalid, fault.CodeRequired, "Give a script with its directory, a command, or a published version to start from.").At("source")
	case base.v.Settings.Source.Script == nil || broken:
		return &base.v.Settings.Source, uuid.Nil, nil
	}
	space, directory, err := target(ctx, tenant, owner)
	if err != nil {
		return nil, uuid.Nil, err
	}
	script := Script{Space: space, Directory: directory, Script: base.v.Settings.Source.Script.Script}
	return &Source{Script: &script}, base.v.ID, nil
}

// place finds where in the owner's home a copy goes.
type place func(ctx context.Context, tenant, owner uuid.UUID) (space uuid.UUID, directory string, err error)

// free is the place of a new version: the one that its name and label say.
func (h *Handler) free(name string) place {
	return func(ctx context.Context, tenant, owner uuid.UUID) (uuid.UUID, string, error) {
		space, err := h.Directories.Free(ctx, tenant, owner, name)
		return space, name, err
	}
}

// maxPlaces bounds how many places are looked at for the copy of an edit.
const maxPlaces = 100

// freeFor is the place of a copy for a version that is edited, whose label can't
// be chosen any more. What lies where it says is often the version's own, from
// before; it may be in use elsewhere, so the copy goes beside it.
func (h *Handler) freeFor(name string) place {
	return func(ctx context.Context, tenant, owner uuid.UUID) (uuid.UUID, string, error) {
		for i := 1; i <= maxPlaces; i++ {
			directory := name
			if i > 1 {
				directory = fmt.Sprintf("%s_%d", name, i)
			}
			space, err := h.Directories.Free(ctx, tenant, owner, directory)
			if !fault.Is(err, fault.CodeNameTaken) {
				return space, directory, err
			}
		}
		return uuid.Nil, "", fault.New(fault.Conflict, fault.CodeNameTaken,
			"The home has too many directories named like the algorithm and its version; remove some of them.").At("basedOnId")
	}
}

func (h *Handler) checkModel(ctx context.Context, g access.Grants, f Fields, faults *fault.List) error {
	if f.Model.Value == nil {
		return nil
	}
	ok, err := h.Models.Model(ctx, g, *f.Model.Value)
	if err == nil && !ok {
		faults.Add(access.Missing().At("modelId"))
	}
	return err
}

// gather adds an error's faults to the list; other errors come back.
func gather(list *fault.List, err error) error {
	if err == nil {
		return nil
	}
	faults, ok := fault.All(err)
	if !ok {
		return err
	}
	list.Add(faults...)
	return nil
}

func hasFault(list fault.List, field string) bool {
	for _, f := range list {
		if len(f.Field) > 0 && f.Field[0] == field {
			return true
		}
	}
	return false
}
