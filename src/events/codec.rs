//! Payloads to bytes and back: the only file that names bincode. Knows which struct each kind and version has, and nothing of
//! headers, blocks or meaning.
//!
//! Encoding is bincode 2's standard configuration (docs/log-format.md, "Payloads"). Two encodings can mean one value, so
//! nobody ever hashes a re-encoding: what is hashed is what is stored.

use super::kinds::carried::{CarriedDaemon, CarriedDaemonV1, DAEMON_VERSION};
use super::kinds::{carried, daemon, operator, pod, session, session_policy, step, tail, verdict, want};
use super::record::{Event, Kind, for_each_event};

/// The header's number for this encoding.
pub const BINCODE_2_STANDARD: u8 = 1;

/// The largest payload, bytes: with its frame it fits a block, and a block stays far below what the store would put into a
/// file of its own, which it never syncs (DESIGN.md, "The log").
pub const PAYLOAD_MAX: usize = 16 * 1024;

/// What decoding may claim, bytes. bincode counts decoded sizes, and one encoded byte decodes to 8 at most (a length or a
/// `u64`): whatever was encoded within [`PAYLOAD_MAX`] decodes within this, and a damaged length does not abort the process.
const DECODE_MAX: usize = 8 * PAYLOAD_MAX;

/// Why bytes are no payload of their kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A newer build wrote it.
    #[error("version {version} of {kind} is not known to this build")]
    NewerVersion {
        /// The kind's name.
        kind: &'static str,
        /// The version that is not known.
        version: u16,
    },
    /// It is longer than any payload.
    #[error("a payload of {0} bytes: at most {PAYLOAD_MAX}")]
    TooLong(usize),
    /// The bytes do not decode.
    #[error("not a {kind}: {why}")]
    Malformed {
        /// The kind's name.
        kind: &'static str,
        /// What bincode says.
        why: String,
    },
    /// It decodes, and bytes are left over.
    #[error("a {kind} of {read} bytes with {left} more behind it")]
    Trailing {
        /// The kind's name.
        kind: &'static str,
        /// Bytes that decoded.
        read: usize,
        /// Bytes that were left.
        left: usize,
    },
}

pub(super) fn write_into<T: serde::Serialize>(payload: &T, out: &mut Vec<u8>) -> Result<(), String> {
    bincode::serde::encode_into_std_write(payload, out, bincode::config::standard()).map_err(|error| error.to_string())?;
    Ok(())
}

pub(super) fn read<T: serde::de::DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Result<T, CodecError> {
    read_within::<T, DECODE_MAX>(kind.name(), bytes)
}

fn read_within<T: serde::de::DeserializeOwned, const MAX: usize>(kind: &'static str, bytes: &[u8]) -> Result<T, CodecError> {
    let config = bincode::config::standard().with_limit::<MAX>();
    let (value, read) =
        bincode::serde::decode_from_slice::<T, _>(bytes, config).map_err(|error| CodecError::Malformed { kind, why: error.to_string() })?;
    match bytes.len() - read {
        0 => Ok(value),
        left => Err(CodecError::Trailing { kind, read, left }),
    }
}

/// The largest state of a subject, bytes: thousands of hosts.
pub const STATE_MAX: usize = 16 << 20;

/// What is known of a subject, as it is kept.
///
/// # Errors
/// [`CodecError::TooLong`] above [`STATE_MAX`]; [`CodecError::Malformed`] when the encoder refuses.
pub fn encode_state<T: serde::Serialize>(state: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    write_into(state, &mut bytes).map_err(|why| CodecError::Malformed { kind: "state", why })?;
    if bytes.len() > STATE_MAX { Err(CodecError::TooLong(bytes.len())) } else { Ok(bytes) }
}

/// A subject as it was kept, from bytes whose checksum was verified.
///
/// # Errors
/// Any [`CodecError`] but a newer version; never panics, whatever the bytes.
pub fn decode_state<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    read_within::<T, { 8 * STATE_MAX }>("state", bytes)
}

/// What the daemon's own records say, as it is carried, from bytes whose checksum was verified; of a layout that this build knows.
///
/// # Errors
/// As [`decode_state`]; [`CodecError::NewerVersion`] for another layout.
pub fn decode_daemon(layout: u16, bytes: &[u8]) -> Result<CarriedDaemon, CodecError> {
    match layout {
        1 => decode_state::<CarriedDaemonV1>(bytes).map(CarriedDaemon::from),
        DAEMON_VERSION => decode_state(bytes),
        version => Err(CodecError::NewerVersion { kind: "daemon", version }),
    }
}

macro_rules! codec {
    ($($name:ident($payload:ty) = $number:literal v $version:literal;)*) => {
        /// The event's payload, in the version that [`Kind::version`] names.
        ///
        /// # Errors
        /// [`CodecError::TooLong`] above [`PAYLOAD_MAX`]; [`CodecError::Malformed`] when the encoder refuses.
        pub fn encode(event: &Event) -> Result<Vec<u8>, CodecError> {
            let mut bytes = Vec::with_capacity(256);
            encode_into(event, &mut bytes)?;
            Ok(bytes)
        }

        /// The same, behind what is in `out`; after an error `out` may end with a part of it.
        ///
        /// # Errors
        /// As [`encode`].
        pub fn encode_into(event: &Event, out: &mut Vec<u8>) -> Result<(), CodecError> {
            let before = out.len();
            let written = match event { $(Event::$name(payload) => write_into::<$payload>(payload, out),)* };
            written.map_err(|why| CodecError::Malformed { kind: event.kind().name(), why })?;
            let length = out.len() - before;
            if length > PAYLOAD_MAX { Err(CodecError::TooLong(length)) } else { Ok(()) }
        }

        /// The event of a payload; the bytes' checksum must have been verified. An older version's struct gets an arm of its
        /// own here, with its pure conversion.
        ///
        /// # Errors
        /// Any [`CodecError`]; never panics, whatever the bytes.
        pub fn decode(kind: Kind, version: u16, bytes: &[u8]) -> Result<Event, CodecError> {
            if bytes.len() > PAYLOAD_MAX {
                return Err(CodecError::TooLong(bytes.len()));
            }
            match (kind, version) {
                $((Kind::$name, $version) => read::<$payload>(kind, bytes).map(Event::$name),)*
                _ => Err(CodecError::NewerVersion { kind: kind.name(), version }),
            }
        }
    };
}
for_each_event!(codec);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::kinds::daemon::{LogRestarted, RestartReason, Setting, SettingsTold};
    use crate::ids::LogId;

    #[test]
    fn a_length_that_is_damaged_is_an_error() {
        let huge = [0xfd, 0, 0, 0, 0, 0, 1, 0, 0];
        for kind in [Kind::StepExplained, Kind::IncarnationStarted, Kind::SettingsTold] {
            let bytes = [&[1_u8, 1][..], &huge].concat();
            assert!(decode(kind, 1, &bytes).is_err(), "{}", kind.name());
            assert!(decode(kind, 1, &huge).is_err(), "{}", kind.name());
        }
    }

    #[test]
    fn bytes_left_over_are_an_error() {
        let log = LogId([0; 16]);
        let event = Event::LogRestarted(LogRestarted { log, reason: RestartReason::NewFolder, former: None, before: None });
        let mut bytes = encode(&event).expect("small");
        bytes.push(0);
        let trailing = CodecError::Trailing { kind: "LogRestarted", read: 19, left: 1 };
        assert_eq!(decode(Kind::LogRestarted, 1, &bytes), Err(trailing));
    }

    #[test]
    fn a_newer_version_is_said_and_not_guessed() {
        let newer = CodecError::NewerVersion { kind: "PodSeen", version: 2 };
        assert_eq!(decode(Kind::PodSeen, 2, &[]), Err(newer));
    }

    #[test]
    fn whatever_fits_when_encoded_is_decoded() {
        // The most decoded bytes for an encoded one: lengths of empty strings, and numbers.
        let empty = Setting { key: String::new(), value: String::new() };
        let fits = |count| Event::SettingsTold(SettingsTold { all: vec![empty.clone(); count] });
        // Two bytes each, and two more for a count above 250.
        let count = (PAYLOAD_MAX - encode(&fits(0)).expect("small").len() - 2) / 2;
        assert!(count > 8_000);
        let bytes = encode(&fits(count)).expect("fits");
        assert_eq!(decode(Kind::SettingsTold, 1, &bytes), Ok(fits(count)));
        assert!(matches!(encode(&fits(count + 1)), Err(CodecError::TooLong(_))));
    }
}
