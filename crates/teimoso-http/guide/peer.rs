// What the examples of the crate's guide share, hidden from their readers: a peer that gives one scripted answer per
// connection, and a clock on which no wait takes time.

fn peer(answers: &'static [&'static str]) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut read = Vec::new();
            let mut byte = [0];
            while !read.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                read.extend(byte);
            }
            stream.write_all(answer.replace('\n', "\r\n").as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            stream.read_to_end(&mut read).unwrap();
        }
    });
    url
}

#[derive(Clone)]
struct NoWait;

impl teimoso_http::Clock for NoWait {
    fn now(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn unix_now(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn sleep(&self, _: std::time::Duration) -> teimoso_http::Sleeping {
        Box::pin(std::future::ready(()))
    }
}
