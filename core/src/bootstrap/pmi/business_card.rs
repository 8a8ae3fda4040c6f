//! Values that ranks exchange through the process manager's key-value space: printable characters without spaces.

use crate::base::{Cause, Rank, Result};
use crate::bootstrap::settings::{Key, ServerAddress};
use crate::os::affinity;

/// The beginning of a card. It identifies the version of the format.
const FORM: &str = "tasuki-card-1";
/// Separates the parts of a value. Numbers, host names and Tasuki's socket names do not contain it.
const COMMA: char = ',';
/// Replaces a space in a text.
const SPACE: char = '~';

/// The properties of a rank's process that the other ranks need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BusinessCard {
    /// The process id.
    pub(super) pid: u32,
    /// The host's name, for error texts.
    host: String,
    /// The running kernel's boot id, and the network and PID namespaces. If two processes have equal values, they can
    /// connect to each other's sockets, and their pids have the same meaning.
    node: String,
    /// The mask of the processors that the process may use, in hexadecimal digits, the lowest first.
    processors: String,
}

impl BusinessCard {
    /// Returns the card of this process.
    pub(super) fn own() -> BusinessCard {
        let read = |path: &str| printable(std::fs::read_to_string(path).unwrap_or_default().trim());
        let namespace = |kind: &str| {
            let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
            printable(&link.to_string_lossy())
        };
        let node =
            format!("{}/{}/{}", read("/proc/sys/kernel/random/boot_id"), namespace("net"), namespace("pid"));
        let (pid, host) = (std::process::id(), read("/proc/sys/kernel/hostname"));
        BusinessCard { pid, host, node, processors: mask(&affinity::allowed()) }
    }

    /// Encodes the card as a value.
    pub(super) fn encode(&self) -> String {
        let BusinessCard { pid, host, node, processors } = self;
        [FORM, &pid.to_string(), host, node, processors].join(&COMMA.to_string())
    }

    /// Decodes a value; `None` if it is not a card.
    pub(super) fn decode(value: &str) -> Option<BusinessCard> {
        let parts: Vec<&str> = value.split(COMMA).collect();
        let [FORM, pid, host, node, processors] = parts[..] else { return None };
        let [host, node, processors] = [host, node, processors].map(str::to_string);
        Some(BusinessCard { pid: pid.parse().ok()?, host, node, processors })
    }
}

/// Returns an error text if the ranks are not all on one node, and so cannot be one job.
pub(super) fn not_on_one_node(cards: &[BusinessCard]) -> Option<String> {
    let first = cards.first()?;
    let (rank, other) =
        cards.iter().enumerate().find(|(_, card)| (&card.node, &card.host) != (&first.node, &first.host))?;
    let where_ = |card: &BusinessCard| format!("host {}", card.host);
    let places = if other.host == first.host {
        format!("rank {rank} is in another container of host {} than rank 0", first.host)
    } else {
        format!("rank 0 runs on {} and rank {rank} on {}", where_(first), where_(other))
    };
    Some(format!(
        "{places}: Tasuki has no fabric between hosts yet. Start all {} ranks on one host (mpiexec -host NAME)",
        cards.len()
    ))
}

/// Returns how many processors the ranks may use together.
pub(super) fn processors(cards: &[BusinessCard]) -> usize {
    let digits = cards.iter().map(|card| card.processors.len()).max().unwrap_or(0);
    let digit = |card: &BusinessCard, at: usize| {
        let byte = card.processors.as_bytes().get(at).copied().unwrap_or(b'0');
        char::from(byte).to_digit(16).unwrap_or(0)
    };
    let together = |at: usize| cards.iter().fold(0, |all, card| all | digit(card, at));
    (0..digits).map(|at| together(at).count_ones() as usize).sum()
}

fn mask(allowed: &[usize]) -> String {
    let digits = allowed.iter().max().map_or(0, |most| most / 4 + 1);
    let digit = |at: usize| {
        allowed.iter().filter(|&&processor| processor / 4 == at).map(|processor| 1 << (processor % 4)).sum()
    };
    (0..digits).filter_map(|at| char::from_digit(digit(at), 16)).collect()
}

/// Replaces characters that a value must not contain.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() && c != COMMA && c != '=' { c } else { '?' }).collect()
}

/// The value that rank 0 puts for all other ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Notice {
    /// The address of the rendezvous server, where all ranks join.
    ServerAddress(ServerAddress),
    /// The ranks cannot be one job, for this reason.
    Refused(String),
}

impl Notice {
    /// Encodes the notice as a value of at most `limit` bytes.
    pub(super) fn encode(&self, limit: usize) -> String {
        match self {
            Notice::ServerAddress(ServerAddress { socket, key }) => {
                format!("server{COMMA}{socket}{COMMA}{key}")
            }
            Notice::Refused(why) => {
                let graphic = |c: char| match c {
                    ' ' => SPACE,
                    '=' => ':', // some process managers split lines at `=`
                    c if c.is_ascii_graphic() => c,
                    _ => '?',
                };
                let text: String = why.chars().map(graphic).collect();
                format!("refused{COMMA}{text}").chars().take(limit).collect()
            }
        }
    }

    /// Decodes a value.
    pub(super) fn decode(value: &str) -> Result<Notice> {
        let notice = match value.split_once(COMMA) {
            Some(("server", rest)) => rest.split_once(COMMA).and_then(|(socket, key)| {
                Some(Notice::ServerAddress(ServerAddress {
                    socket: socket.to_string(),
                    key: Key::parse(key)?,
                }))
            }),
            Some(("refused", why)) => Some(Notice::Refused(why.replace(SPACE, " "))),
            _ => None,
        };
        let text = || format!("the notice of rank {} is malformed: {value:?}", Rank(0));
        notice.ok_or_else(|| Cause::Join(text()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(host: &str, node: &str, processors: &str) -> BusinessCard {
        BusinessCard { pid: 7, host: host.into(), node: node.into(), processors: processors.into() }
    }

    #[test]
    fn cards_and_notices_are_decoded_as_encoded() {
        let own = BusinessCard::own();
        let text = own.encode();
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'='), "{text}");
        assert_eq!(BusinessCard::decode(&text), Some(own));
        assert_eq!(BusinessCard::decode("tasuki-card-1,7,a,b"), None);
        assert_eq!(BusinessCard::decode("tasuki-card-2,7,a,b,c"), None);
        let notices = [
            Notice::ServerAddress(ServerAddress { socket: "tasuki-pmi-0-ab".into(), key: Key([5; 16]) }),
            Notice::Refused("rank 1 runs on host b_c: no".into()),
        ];
        for notice in notices {
            let text = notice.encode(1000);
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'='), "{text}");
            assert_eq!(Notice::decode(&text).unwrap(), notice);
        }
        assert!(Notice::decode("server,a,short").unwrap_err().to_string().contains("server,a,short"));
        assert_eq!(Notice::Refused("too long".into()).encode(11), "refused,too");
    }

    #[test]
    fn ranks_on_two_hosts_are_refused() {
        let (here, there) = (card("a", "1", "3"), card("b", "2", "3"));
        assert_eq!(not_on_one_node(&[here.clone(), here.clone()]), None);
        let why = not_on_one_node(&[here.clone(), here.clone(), there]).unwrap();
        assert!(why.contains("rank 0 runs on host a and rank 2 on host b") && why.contains("all 3 ranks"));
        assert!(
            not_on_one_node(&[here, card("a", "2", "3")]).unwrap().contains("another container of host a")
        );
    }

    #[test]
    fn processors_shared_by_ranks_are_counted_once() {
        assert_eq!(mask(&[0, 1, 5, 8]), "321");
        assert_eq!(mask(&[]), "");
        let count = |masks: &[&str]| processors(&masks.iter().map(|m| card("a", "1", m)).collect::<Vec<_>>());
        assert_eq!(count(&["3", "3"]), 2);
        assert_eq!(count(&["1", "2", "04"]), 3);
        assert_eq!(count(&["321", "x"]), 4);
    }
}
