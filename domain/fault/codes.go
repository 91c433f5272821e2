package fault

// Code is a stable name of a fault. The GraphQL enum ErrorCode lists exactly these.
type Code string

// The closed list of codes.
const (
	CodeInternal           Code = "INTERNAL"
	CodeUnavailable        Code = "UNAVAILABLE"
	CodeTimeout            Code = "TIMEOUT"
	CodeUnauthenticated    Code = "UNAUTHENTICATED"
	CodeForbidden          Code = "FORBIDDEN"
	CodeScopeNotEnabled    Code = "SCOPE_NOT_ENABLED"
	CodeNotFound           Code = "NOT_FOUND"
	CodeBadRequest         Code = "BAD_REQUEST"
	CodeLimitExceeded      Code = "LIMIT_EXCEEDED"
	CodeStaleRead          Code = "STALE_READ"
	CodeCursorInvalid      Code = "CURSOR_INVALID"
	CodeCursorTooOld       Code = "CURSOR_TOO_OLD"
	CodeRequired           Code = "REQUIRED"
	CodeTooLong            Code = "TOO_LONG"
	CodeTooShort           Code = "TOO_SHORT"
	CodeTooMany            Code = "TOO_MANY"
	CodeOutOfRange         Code = "OUT_OF_RANGE"
	CodeInvalidCharacters  Code = "INVALID_CHARACTERS"
	CodeInvalidValue       Code = "INVALID_VALUE"
	CodeInvalidPath        Code = "INVALID_PATH"
	CodeNotClearable       Code = "NOT_CLEARABLE"
	CodeNotAllowed         Code = "NOT_ALLOWED"
	CodeDuplicate          Code = "DUPLICATE"
	CodeNameTaken          Code = "NAME_TAKEN"
	CodeVersionTaken       Code = "VERSION_TAKEN"
	CodeInvalidState       Code = "INVALID_STATE"
	CodeInUse              Code = "IN_USE"
	CodeConflict           Code = "CONFLICT"
	CodeVersionConflict    Code = "VERSION_CONFLICT"
	CodeIdempotency        Code = "IDEMPOTENCY_CONFLICT"
	CodeSecretAlreadyShown Code = "SECRET_ALREADY_SHOWN"
	CodeQuotaExceeded      Code = "QUOTA_EXCEEDED"
	CodeLastAdmin          Code = "LAST_ADMIN"
)
