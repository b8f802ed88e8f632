use super::digest::Scheme;
use super::*;

/// Runs a server on `input` cut at `cuts`; what it sent and whether it is complete.
fn serve(input: &[u8], portion: usize) -> (Vec<u8>, bool, usize) {
    let mut server = Handshake::server(7);
    let mut out = Vec::new();
    let mut done = false;
    let mut rest = 0;
    for portion in input.chunks(portion) {
        let mut portion = portion;
        if !done {
            done = server.advance(&mut portion, &mut out).unwrap();
        }
        rest += portion.len();
    }
    (out, done, rest)
}

fn c1(seed: u64, version: u32, scheme: Option<Scheme>) -> Block {
    let mut c1 = random_block(seed, version);
    c1[..4].copy_from_slice(&[0, 0, 1, 2]);
    if let Some(scheme) = scheme {
        Signer::PLAYER.sign(&mut c1, scheme);
    }
    c1
}

/// HS-02, HS-03: without a valid digest S2 equals C1, whatever the version bytes; C2 may be zeros;
/// and the bytes may come in any portions.
#[test]
fn hs_02_hs_03_plain() {
    for version in [0, 0x8000_0702, 0x0a00_0000] {
        let c1 = c1(1, version, None);
        let input = [&[3][..], &c1, &[0; BLOCK_BYTES], b"chunks"].concat();
        for portion in [1, 2, 1535, 1536, 1537, 3073, 5000] {
            let (out, done, rest) = serve(&input, portion);
            assert!(done);
            assert_eq!(rest, 6);
            assert_eq!(out.len(), 1 + 2 * BLOCK_BYTES);
            assert_eq!(out[0], 3);
            assert_eq!(out[5..9], [0; 4], "S1 says plain");
            assert_eq!(out[1 + BLOCK_BYTES..], c1);
        }
        assert!(!serve(&input[..3072], 100).1);
    }
}

/// HS-05: every digest is found in both schemes and answered in the same one.
#[test]
fn hs_05_five_thousand_digests() {
    for seed in 0..5000 {
        let scheme = Scheme::ALL[usize::from(seed % 2 == 0)];
        let c1 = c1(seed, 0x8000_0702, Some(scheme));
        let mut out = Vec::new();
        answer(&c1, !seed, &mut out);
        let s1: &Block = out[1..].first_chunk().unwrap();
        let s2: &Block = out[1 + BLOCK_BYTES..].first_chunk().unwrap();
        assert_eq!(Signer::SERVER.find(s1).unwrap().0, scheme, "{seed}");
        let mut expected = *s2;
        let (_, digest) = Signer::PLAYER.find(&c1).unwrap();
        Signer::SERVER.sign_answer(&mut expected, &digest);
        assert_eq!(s2, &expected);
        assert_ne!(s2, &c1);
    }
}

#[test]
fn a_wrong_first_byte_is_refused_at_once() {
    for byte in [b'G', 0, 6, 0x16] {
        let error = Handshake::server(0).advance(&mut &[byte][..], &mut Vec::new());
        assert_eq!(error, Err(Error::NotRtmp(byte)));
    }
}

#[test]
fn client_and_server_agree_in_any_portions() {
    for portion in [1, 7, 1536, 4000] {
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        let mut client = Handshake::client(1, &mut to_server);
        let mut server = Handshake::server(2);
        let mut done = (false, false);
        while done != (true, true) {
            let take = to_server.len().min(portion);
            let bytes: Vec<u8> = to_server.drain(..take).collect();
            done.1 = server.advance(&mut &bytes[..], &mut to_client).unwrap();
            let take = to_client.len().min(portion);
            let bytes: Vec<u8> = to_client.drain(..take).collect();
            done.0 = client.advance(&mut &bytes[..], &mut to_server).unwrap();
        }
        assert!(to_server.is_empty() && to_client.is_empty());
    }
}

/// An implementation that shares no code checks the digests of ours, and we those of its own.
#[test]
fn rml_rtmp_agrees() {
    use rml_rtmp::handshake::{Handshake as Peer, HandshakeProcessResult, PeerType};
    let mut client = Peer::new(PeerType::Client);
    let mut server = Handshake::server(3);
    let mut out = Vec::new();
    let c01 = client.generate_outbound_p0_and_p1().unwrap();
    assert!(!server.advance(&mut &c01[..], &mut out).unwrap());
    assert!(Signer::SERVER.find(out[1..].first_chunk().unwrap()).is_some());
    let Ok(HandshakeProcessResult::Completed { response_bytes, .. }) = client.process_bytes(&out)
    else {
        panic!("the peer does not accept S0, S1 and S2");
    };
    assert!(server.advance(&mut &response_bytes[..], &mut out).unwrap());
}
