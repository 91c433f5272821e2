package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/urfave/cli/v3"

	"tallyard/domain/fault"
	"tallyard/domain/user"
)

// bootstrapInput is what the first admin of a tenant is made of.
type bootstrapInput struct{ Tenant, Project, Login, Name, Email string }

func (p *parts) bootstrap(w http.ResponseWriter, r *http.Request) {
	var in bootstrapInput
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&in); err != nil {
		http.Error(w, "the request is not readable", http.StatusBadRequest)
		return
	}
	token, err := p.domain.bootstrap(r.Context(), in.Tenant, in.Project, user.Person{LoginName: in.Login, DisplayName: in.Name, Email: in.Email})
	if err != nil {
		status := http.StatusInternalServerError
		if _, ok := fault.All(err); ok {
			status = http.StatusUnprocessableEntity
		}
		http.Error(w, err.Error(), status)
		return
	}
	_, _ = fmt.Fprintln(w, token) // a client that left needs no answer
}

func bootstrapCommand() *cli.Command {
	return &cli.Command{
		Name: "bootstrap", Usage: "make a tenant with its first admin in a running program, and print a token for them",
		Flags: adminFlags(
			&cli.StringFlag{Name: "tenant", Required: true, Usage: "name of the tenant"},
			&cli.StringFlag{Name: "project", Value: "main", Usage: "name of its first project"},
			&cli.StringFlag{Name: "login", Required: true, Usage: "login name of the admin"},
			&cli.StringFlag{Name: "name", Required: true, Usage: "name that the admin is called by"},
			&cli.StringFlag{Name: "email", Usage: "e-mail address of the admin"},
		),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			b, err := json.Marshal(bootstrapInput{cmd.String("tenant"), cmd.String("project"), cmd.String("login"), cmd.String("name"), cmd.String("email")})
			if err != nil {
				return err
			}
			r, w := io.Pipe()
			go func() { _, err := w.Write(b); w.CloseWithError(err) }()
			return admin(ctx, cmd, http.MethodPost, "/bootstrap", r)
		},
	}
}
