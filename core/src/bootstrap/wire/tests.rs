//! Messages survive the way, and nothing that comes that way does any harm.

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
            barrier: true,
        },
        Request::Host { greeting: greeting(), layout: 1, key, size: 9 },
        Request::Taken,
        Request::Ask(greeting()),
    ]
}

fn answers() -> Vec<Answer> {
    vec![
        Answer::Refused("no".into()),
        Answer::Welcome { size: 5, descriptors: 6 },
        Answer::More { descriptors: 200 },
        Answer::Dead { rank: Rank(2), how: "signal 9".into() },
        Answer::Report("{}".into()),
    ]
}

/// The message without its length, which must be right.
fn body(bytes: &[u8]) -> &[u8] {
    let length = length(bytes, ANSWER_BYTES_MAX).unwrap().unwrap();
    assert_eq!(bytes.len(), LENGTH_BYTES + length);
    &bytes[LENGTH_BYTES..]
}

#[test]
fn what_is_said_is_heard() {
    for request in requests() {
        assert_eq!(Request::decode(body(&request.encode())).unwrap(), request);
    }
    for answer in answers() {
        assert_eq!(Answer::decode(body(&answer.encode())).unwrap(), answer);
    }
}

#[test]
fn another_version_can_still_say_what_it_is() {
    let other = Greeting { protocol: layout::PROTOCOL + 1, ..greeting() };
    let key = Key([7; 16]);
    let hello =
        Request::Hello { greeting: other.clone(), layout: 1, key, rank: Rank(0), size: 1, barrier: false }
            .encode();
    assert_eq!(Request::decode(body(&hello)).unwrap(), Request::Stranger(other.clone()));
    let longer = [body(&hello), b"things that we do not know"].concat();
    assert_eq!(Request::decode(&longer).unwrap(), Request::Stranger(other));
}

#[test]
fn cut_or_lengthened_messages_are_errors() {
    let all = requests()
        .iter()
        .map(Request::encode)
        .chain(answers().iter().map(Answer::encode))
        .collect::<Vec<_>>();
    for message in all {
        let message = body(&message);
        for end in 0..message.len() {
            assert!(Request::decode(&message[..end]).is_err() && Answer::decode(&message[..end]).is_err());
        }
        let longer = [message, &[0]].concat();
        assert!(Request::decode(&longer).is_err() && Answer::decode(&longer).is_err());
    }
}

#[test]
fn lengths_are_bounded() {
    assert!(length(&[1, 0, 0], 10).unwrap().is_none());
    assert_eq!(length(&[10, 0, 0, 0], 10).unwrap(), Some(10));
    assert!(length(&[11, 0, 0, 0], 10).is_err());
    assert!(length(&[0, 0, 0, 0], 10).is_err());
    assert!(length(&[255; 4], ANSWER_BYTES_MAX).is_err());
}

/// A small generator: the bytes need not be good, only many and the same each time.
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
fn random_bytes_do_no_harm() {
    let mut noise = Noise(42);
    let whole: Vec<Vec<u8>> =
        requests().iter().map(Request::encode).chain(answers().iter().map(Answer::encode)).collect();
    for round in 0..200_000 {
        let mut bytes = whole[round % whole.len()].clone();
        for _ in 0..noise.next() % 4 + 1 {
            let at = noise.next() as usize % bytes.len();
            bytes[at] = noise.next() as u8;
        }
        bytes.truncate(noise.next() as usize % (bytes.len() + 1));
        let _ = length(&bytes, REQUEST_BYTES_MAX);
        let message = bytes.get(LENGTH_BYTES..).unwrap_or_default();
        let _ = (Request::decode(message), Answer::decode(message));
        let pure: Vec<u8> = (0..noise.next() % 64).map(|_| noise.next() as u8).collect();
        let _ = (Request::decode(&pure), Answer::decode(&pure));
    }
}
