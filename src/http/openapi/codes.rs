//! Every code that a refusal can have: its status and what it means. Codes are never renamed, and never given another meaning.

/// A refusal's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// Its name.
    pub name: &'static str,
    /// The HTTP status that it comes with.
    pub status: u16,
    /// What it means.
    pub meaning: &'static str,
}

const fn code(name: &'static str, status: u16, meaning: &'static str) -> Code {
    Code { name, status, meaning }
}

/// All of them, of the control listener.
pub const CODES: &[Code] = &[
    // Of every route.
    code("unauthorized", 401, "no bearer token, or one that nobody has"),
    code("forbidden", 403, "the token has not the role"),
    code("foreign_origin", 403, "asked by a page of another origin"),
    code("foreign_host", 403, "on a loopback listener `Host` is localhost, 127.0.0.1 or [::1]"),
    code("not_found", 404, "no such path; no such app, session or record, or none that the caller may see"),
    code("method_not_allowed", 405, "the path takes other methods; `Allow` names them"),
    code("body_too_large", 413, "the body is longer than 64 KiB"),
    code("access_unreadable", 503, "the access file cannot be used; the daemon's log says why"),
    code("review_failed", 503, "the API server could not be asked about the token"),
    code("busy", 503, "the daemon did not get to it in time, or has too much to do"),
    // Of apps, log, feed and proofs.
    code("bad_cursor", 400, "a cursor is `LOG-ID:SEQ`"),
    code("bad_erasure", 400, "what is to be erased is `{\"seq\": NUMBER, \"reason\": TEXT}`"),
    code("bad_reason", 400, "the reason is empty or too long"),
    code("not_acceptable", 406, "`Accept` names no form of the feed"),
    code("ambiguous", 409, "several subjects have that in their names; `detail` has some"),
    code("other_log", 409, "the cursor is of another log; `start` is the position to go on from"),
    code("decides", 409, "the record decides, and is kept"),
    code("erased_already", 409, "the record says nothing any more"),
    code("no_room", 409, "the block has no room for the record that it was erased"),
    code("damaged", 409, "the record's block cannot be read"),
    code("log_failed", 503, "the log takes no more appends at the moment"),
    code("too_many_readers", 503, "as many readers of the feed are connected as may"),
    code("bad_app", 400, "no name of an app"),
    code("bad_range", 400, "no range of records, or no subject"),
    code("bad_proof", 400, "no question for a proof, or a tree that has no such part"),
    code("ahead", 409, "the log has fewer records than that"),
    code("aged_out", 410, "records from there on aged out; `wharf-minimum` is the first that is left"),
    code("gone", 410, "leaves that the proof needs are not there any more"),
    code("log_unreadable", 500, "the log cannot be read for the proof"),
    code("no_log", 503, "the log is not open"),
    code("log_not_open", 503, "the log is not open, or has no checkpoint yet"),
    code("unreadable", 503, "the log cannot be read"),
    // Of sessions: what was asked.
    code("bad_session_id", 400, "an id is 1 to 40 of a-z, 0-9 and -, with a letter or digit at both ends"),
    code("bad_query", 400, "a parameter is unknown, there twice, missing, or out of range"),
    code("bad_body", 400, "the body is no such JSON document"),
    code("bad_tenant", 400, "a tenant is a DNS label of at most 63 characters"),
    code("bad_service", 400, "`X-Service` and `X-Resource` are not those of the seed's form"),
    code("foreign_tenant", 403, "the token is not bound to that tenant"),
    code("no_sessions", 404, "there are no sessions here: `sessions.serve` is off"),
    code("other_tenant", 409, "the session is another tenant's, for as long as it is there"),
    code("removed", 409, "the session was deleted or suspended meanwhile"),
    code("too_many_of_tenant", 429, "the tenant has as many sessions as it may have"),
    code("too_fast", 429, "more sessions are asked for in a second than may be"),
    code("too_many_sessions", 503, "there are as many sessions as there may be"),
    code("too_many_waiting", 503, "as many callers wait as may"),
    code("unavailable", 503, "nobody acts on sessions at the moment: the daemon starts, stops or stands by; or not on this one"),
    // Of sessions: how it went.
    code("not_ready", 504, "not ready by the caller's deadline; provisioning goes on, and the next call joins it"),
    code("old_pod", 503, "the same, because the old pod is still terminating and may still write to the claim"),
    code("too_long", 504, "given up: all stages together took too long; the next call begins anew"),
    code("pod_ended", 502, "its pod ended before it was ready; the next call begins anew"),
    code("pod_stuck", 502, "its pod hung in a stage and was given up; the next call begins anew"),
    code("pod_never_started", 502, "its pod cannot start; the next call begins anew"),
    code("quarantined", 500, "the session broke an invariant, and is not acted on until the daemon is restarted"),
    code("refused_invalid", 502, "the cluster takes an object of it for invalid"),
    code("refused_policy", 502, "a policy of the cluster forbids its pod"),
    code("refused_runtime_class", 502, "the runtime class is not there"),
    code("refused_foreign", 409, "an object with one of its names is there and is not ours"),
    code("refused_different", 409, "a different object of ours has one of its names"),
    code("refused_forbidden", 503, "the daemon lacks a right in the cluster; it is tried on"),
    code("refused_quota", 503, "the namespace's quota is used up; it is tried on"),
    code("refused_webhook", 503, "an admission webhook refuses it or is down; it is tried on"),
    code("refused_namespace", 503, "the namespace is missing or going away; it is tried on"),
    code("refused_network_policy", 503, "the network policy of sessions is not confirmed; it is tried on"),
];

/// The code of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.name == name)
}
