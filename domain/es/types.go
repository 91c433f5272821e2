package es

// Types are the core's own events.
var Types = []TypeDef{
	Type[NameReserved]("name.reserved.v1"),
	Type[NameReleased]("name.released.v1"),
	Type[CommandAccepted]("command.accepted.v1"),
	Type[CommandCompleted]("command.completed.v1"),
	Type[CommandRefused]("refusals.command_refused.v1"),
	Upcast("refusals.summarised.v1", "refusals.summarised.v2", summarisedOf),
	Type[RefusalsSummarised]("refusals.summarised.v2"),
	Type[InstallationCreated]("installation.created.v1"),
	Type[ProcessAdvanced]("process.advanced.v1"),
}
