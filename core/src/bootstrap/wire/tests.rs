//! Messages are decoded as they were encoded, and malformed bytes cause errors, never panics.

use super::*;

fn greeting() -> Greeting {
    Greeting { protocol: layout::PROTOCOL, version: "1.2.3".into(), executable: "/a/prögram".into() }
}

fn requests() -> Vec<Request> {
    let key = Key([7; 16]);
    vec![
        Request::Hello {
            greeting: greeting(),
            layout: layout::HASH,
            key,
            rank: Rank(3),
            size: 4,
            has_membarrier: true,
        },
        Request::Host { greeting: greeting(), layout: 1, key, size: 9 },
        Request::Received,
        Request::Ask(greeting()),
    ]
}

fn replies() -> Vec<ServerReply> {
    vec![
        ServerReply::Refused("no".into()),
        ServerReply::Welcome { size: 5, descriptors: 6 },
        ServerReply::More { descriptors: 200 },
        ServerReply::Dead { rank: Rank(2), how: "signal 9".into() },
        ServerReply::Report("{}".into()),
    ]
}

/// Returns the message without its length, which must be correct.
fn body(bytes: &[u8]) -> &[u8] {
    let length = length(bytes, REPLY_BYTES_MAX).unwrap().unwrap();
    assert_eq!(bytes.len(), LENGTH_BYTES + length);
    &bytes[LENGTH_BYTES..]
}

#[test]
fn messages_are_decoded_as_encoded() {
    for request in requests() {
        assert_eq!(Request::decode(body(&request.encode())).unwrap(), request);
    }
    for reply in replies() {
        assert_eq!(ServerReply::decode(body(&reply.encode())).unwrap(), reply);
    }
}

#[test]
fn the_greeting_of_another_version_is_decoded() {
    let other = Greeting { protocol: layout::PROTOCOL + 1, ..greeting() };
    let key = Key([7; 16]);
    let hello = Request::Hello {
        greeting: other.clone(),
        layout: 1,
        key,
        rank: Rank(0),
        size: 1,
        has_membarrier: false,
    }
    .encode();
    assert_eq!(Request::decode(body(&hello)).unwrap(), Request::OtherVersion(other.clone()));
    let longer = [body(&hello), b"fields of another version"].concat();
    assert_eq!(Request::decode(&longer).unwrap(), Request::OtherVersion(other));
}

#[test]
fn messages_that_are_too_short_or_too_long_are_errors() {
    let all = requests()
        .iter()
        .map(Request::encode)
        .chain(replies().iter().map(ServerReply::encode))
        .collect::<Vec<_>>();
    for message in all {
        let message = body(&message);
        for end in 0..message.len() {
            assert!(
                Request::decode(&message[..end]).is_err() && ServerReply::decode(&message[..end]).is_err()
            );
        }
        let longer = [message, &[0]].concat();
        assert!(Request::decode(&longer).is_err() && ServerReply::decode(&longer).is_err());
    }
}

#[test]
fn lengths_are_bounded() {
    assert!(length(&[1, 0, 0], 10).unwrap().is_none());
    assert_eq!(length(&[10, 0, 0, 0], 10).unwrap(), Some(10));
    assert!(length(&[11, 0, 0, 0], 10).is_err());
    assert!(length(&[0, 0, 0, 0], 10).is_err());
    assert!(length(&[255; 4], REPLY_BYTES_MAX).is_err());
}

/// A small random generator. The bytes need not be of good quality, but equal in each run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn random_bytes_cause_no_panic() {
    let mut noise = Noise(42);
    let whole: Vec<Vec<u8>> =
        requests().iter().map(Request::encode).chain(replies().iter().map(ServerReply::encode)).collect();
    for round in 0..200_000 {
        let mut bytes = whole[round % whole.len()].clone();
        for _ in 0..noise.next() % 4 + 1 {
            let at = noise.next() as usize % bytes.len();
            bytes[at] = noise.next() as u8;
        }
        bytes.truncate(noise.next() as usize % (bytes.len() + 1));
        let _ = length(&bytes, REQUEST_BYTES_MAX);
        let message = bytes.get(LENGTH_BYTES..).unwrap_or_default();
        let _ = (Request::decode(message), ServerReply::decode(message));
        let pure: Vec<u8> = (0..noise.next() % 64).map(|_| noise.next() as u8).collect();
        let _ = (Request::decode(&pure), ServerReply::decode(&pure));
    }
}
