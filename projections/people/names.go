package people

import "fmt"

// NameOf is an SQL expression for the name of the user whose id an expression
// gives. Other read models may use it; who is not there shows as null, and the
// caller as unknown.
func NameOf(id string) string {
	return fmt.Sprintf("(SELECT n.display_name FROM {g}.users n WHERE n.id = %s)", id)
}

// ProjectNameOf is an SQL expression for the name of a project.
func ProjectNameOf(id string) string {
	return fmt.Sprintf("(SELECT n.name FROM {g}.projects n WHERE n.id = %s)", id)
}
