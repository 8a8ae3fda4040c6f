//! What ranks tell each other through the process manager's key-value space: printable characters without spaces.

use crate::base::{Cause, Rank, Result};
use crate::bootstrap::settings::{Key, ServerAddress};
use crate::os::affinity;

/// What a card begins with; another version would tell other things.
const FORM: &str = "tasuki-card-1";
/// Between the parts of a value: no character of a number, of a name of a host, or of a socket's name of ours.
const COMMA: char = ',';
/// Stands for a space in a text.
const SPACE: char = '~';

/// What a rank says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BusinessCard {
    /// Its process.
    pub(super) pid: u32,
    /// Its host's name, for people.
    host: String,
    /// What tells whether two processes can reach each other's sockets and know each other's numbers: the running
    /// kernel, and the name spaces of network and processes.
    node: String,
    /// The processors that it may use, four a hexadecimal digit, the lowest first.
    processors: String,
}

impl BusinessCard {
    /// This process's own.
    pub(super) fn own() -> BusinessCard {
        let read = |path: &str| printable(std::fs::read_to_string(path).unwrap_or_default().trim());
        let space = |kind: &str| {
            let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
            printable(&link.to_string_lossy())
        };
        let node = format!("{}/{}/{}", read("/proc/sys/kernel/random/boot_id"), space("net"), space("pid"));
        let (pid, host) = (std::process::id(), read("/proc/sys/kernel/hostname"));
        BusinessCard { pid, host, node, processors: mask(&affinity::allowed()) }
    }

    /// The card as a value.
    pub(super) fn encode(&self) -> String {
        let BusinessCard { pid, host, node, processors } = self;
        [FORM, &pid.to_string(), host, node, processors].join(&COMMA.to_string())
    }

    /// Reads a value; `None` if it is no card.
    pub(super) fn decode(value: &str) -> Option<BusinessCard> {
        let parts: Vec<&str> = value.split(COMMA).collect();
        let [FORM, pid, host, node, processors] = parts[..] else { return None };
        let [host, node, processors] = [host, node, processors].map(str::to_string);
        Some(BusinessCard { pid: pid.parse().ok()?, host, node, processors })
    }
}

/// Why these ranks cannot be one job, if they are not all on one node.
pub(super) fn apart(cards: &[BusinessCard]) -> Option<String> {
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

/// How many processors those ranks may use together.
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

/// Names as they may stand in a value.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() && c != COMMA && c != '=' { c } else { '?' }).collect()
}

/// What rank 0 answers all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Notice {
    /// Come here.
    ServerAddress(ServerAddress),
    /// They cannot be one job.
    Refused(String),
}

impl Notice {
    /// The notice as a value of at most `limit` bytes.
    pub(super) fn encode(&self, limit: usize) -> String {
        match self {
            Notice::ServerAddress(ServerAddress { socket, key }) => {
                format!("door{COMMA}{socket}{COMMA}{key}")
            }
            Notice::Refused(why) => {
                let graphic = |c: char| match c {
                    ' ' => SPACE,
                    '=' => ':', // some process managers split a line at it
                    c if c.is_ascii_graphic() => c,
                    _ => '?',
                };
                let text: String = why.chars().map(graphic).collect();
                format!("refused{COMMA}{text}").chars().take(limit).collect()
            }
        }
    }

    /// Reads a value.
    pub(super) fn decode(value: &str) -> Result<Notice> {
        let notice = match value.split_once(COMMA) {
            Some(("door", rest)) => rest.split_once(COMMA).and_then(|(socket, key)| {
                Some(Notice::ServerAddress(ServerAddress {
                    socket: socket.to_string(),
                    key: Key::parse(key)?,
                }))
            }),
            Some(("refused", why)) => Some(Notice::Refused(why.replace(SPACE, " "))),
            _ => None,
        };
        let what = || format!("what rank {} says of the job makes no sense: {value:?}", Rank(0));
        notice.ok_or_else(|| Cause::Join(what()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(host: &str, node: &str, processors: &str) -> BusinessCard {
        BusinessCard { pid: 7, host: host.into(), node: node.into(), processors: processors.into() }
    }

    #[test]
    fn cards_and_notices_pass_as_values() {
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
        assert!(Notice::decode("door,a,short").unwrap_err().to_string().contains("door,a,short"));
        assert_eq!(Notice::Refused("too long".into()).encode(11), "refused,too");
    }

    #[test]
    fn ranks_on_two_hosts_are_apart() {
        let (here, there) = (card("a", "1", "3"), card("b", "2", "3"));
        assert_eq!(apart(&[here.clone(), here.clone()]), None);
        let why = apart(&[here.clone(), here.clone(), there]).unwrap();
        assert!(why.contains("rank 0 runs on host a and rank 2 on host b") && why.contains("all 3 ranks"));
        assert!(apart(&[here, card("a", "2", "3")]).unwrap().contains("another container of host a"));
    }

    #[test]
    fn processors_are_counted_once() {
        assert_eq!(mask(&[0, 1, 5, 8]), "321");
        assert_eq!(mask(&[]), "");
        let count = |masks: &[&str]| processors(&masks.iter().map(|m| card("a", "1", m)).collect::<Vec<_>>());
        assert_eq!(count(&["3", "3"]), 2);
        assert_eq!(count(&["1", "2", "04"]), 3);
        assert_eq!(count(&["321", "x"]), 4);
    }
}
