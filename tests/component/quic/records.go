// SPDX-License-Identifier: Apache-2.0

// records serve|connect DIR CERTIFICATE NAME PORT N LOSS: another implementation of QUIC (quic-go of
// Debian) and of the records of docs/carriers.md, for quic_interop.py. It loses LOSS of 1000 of the
// datagrams that it sends and receives. HELLO until each end has its nonce back, WISH, then N
// datagrams in each direction, which tests/component/quic/records.c makes in the same way.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/lucas-clemente/quic-go"
)

const (
	streams  = 64
	tunnelID = 0x5205
	epoch    = 9
	nonce    = uint64(0x99aabbccddeeff00)
	longest  = 9216
	longEach = 97
)

const (
	typeDatagram = iota
	typeHello
	typeWish
)

func die(err error) {
	if err != nil {
		fmt.Println("wrong", err)
		os.Exit(1)
	}
}

// A socket that loses datagrams in both directions.
type lossy struct {
	net.PacketConn
	mutex sync.Mutex
	dice  *rand.Rand
	loss  int
}

func (l *lossy) lost() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.dice.Intn(1000) < l.loss
}

func (l *lossy) WriteTo(p []byte, to net.Addr) (int, error) {
	if l.lost() {
		return len(p), nil
	}
	return l.PacketConn.WriteTo(p, to)
}

func (l *lossy) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := l.PacketConn.ReadFrom(p)
		if err != nil || !l.lost() {
			return n, from, err
		}
	}
}

func lengthOf(k uint32) int {
	if k%longEach == longEach-1 {
		return longest
	}
	return int(21 + k*7919%1400)
}

func body(k uint32) []byte {
	b := make([]byte, lengthOf(k))
	binary.BigEndian.PutUint64(b, uint64(k))
	for i := 8; i < len(b); i++ {
		b[i] = byte(k*31 + uint32(i)*7)
	}
	return b
}

func record(kind, worker byte, b []byte) []byte {
	head := []byte{byte(len(b) >> 8), byte(len(b)), kind, worker}
	return append(head, b...)
}

// A HELLO datagram of the native carrier: header, CRC-32, body.
func hello(want bool, echo, echoEpoch uint64) []byte {
	b := make([]byte, 88)
	b[0] = 2<<4 | 1
	h := b[20:]
	if want {
		h[0] = 1
	}
	binary.BigEndian.PutUint16(h[2:], 1472)
	binary.BigEndian.PutUint32(h[4:], 1)
	binary.BigEndian.PutUint64(h[8:], tunnelID)
	binary.BigEndian.PutUint64(h[16:], epoch)
	binary.BigEndian.PutUint64(h[24:], nonce)
	binary.BigEndian.PutUint64(h[32:], echo)
	binary.BigEndian.PutUint64(h[40:], echoEpoch)
	binary.BigEndian.PutUint32(h[48:], 1)
	binary.BigEndian.PutUint32(b[16:], crc32.ChecksumIEEE(b))
	return record(typeHello, 0, b)
}

type end struct {
	conn    quic.Connection
	n       uint32
	out     []quic.SendStream
	mutex   sync.Mutex
	got     uint32
	open    chan struct{}
	isOpen  bool
	all     chan struct{}
	control quic.SendStream
}

// Reads HELLO; answers; says whether our nonce came back.
func (e *end) onHello(b []byte) error {
	want := binary.BigEndian.Uint32(b[16:])
	copy(b[16:20], []byte{0, 0, 0, 0})
	h := b[20:]
	if crc32.ChecksumIEEE(b) != want || b[0] != 2<<4|1 ||
		binary.BigEndian.Uint64(h[8:]) != tunnelID {
		return errors.New("HELLO")
	}
	echo, echoEpoch := binary.BigEndian.Uint64(h[32:]), binary.BigEndian.Uint64(h[40:])
	if echo != 0 && (echo != nonce || echoEpoch != epoch) {
		return errors.New("HELLO echoes what was never sent")
	}
	open := echo != 0
	if h[0]&1 != 0 {
		_, err := e.control.Write(hello(!open, binary.BigEndian.Uint64(h[24:]), binary.BigEndian.Uint64(h[16:])))
		if err != nil {
			return err
		}
	}
	if open && !e.isOpen {
		e.isOpen = true
		close(e.open)
	}
	return nil
}

func (e *end) onDatagram(worker byte, b []byte, k uint32) error {
	if !bytes.Equal(b, body(k)) || uint32(worker) != k%4 {
		return fmt.Errorf("datagram %d", k)
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.got++
	if e.got == e.n {
		close(e.all)
	}
	return nil
}

func (e *end) readStream(s quic.ReceiveStream) {
	index := uint32(s.StreamID() / 4)
	next := index - 1
	head := make([]byte, 4)
	for {
		if _, err := io.ReadFull(s, head); err != nil {
			return // the connection has ended
		}
		b := make([]byte, int(head[0])<<8|int(head[1]))
		if _, err := io.ReadFull(s, b); err != nil {
			return
		}
		switch {
		case head[2] == typeHello && index == 0 && len(b) == 88:
			die(e.onHello(b))
		case head[2] == typeWish && index == 0 && len(b) == 12:
			fmt.Printf("wish count=%d carrier=%d detour=%d\n", binary.BigEndian.Uint32(b), b[4], b[5])
		case head[2] == typeDatagram && index > 0:
			die(e.onDatagram(head[3], b, next))
			next += streams - 1
		default:
			die(fmt.Errorf("record type %d of %d bytes on stream %d", head[2], len(b), index))
		}
	}
}

func (e *end) accept() {
	for {
		s, err := e.conn.AcceptUniStream(context.Background())
		if err != nil {
			return
		}
		go e.readStream(s)
	}
}

func (e *end) sendAll() {
	<-e.open
	wish := make([]byte, 12)
	wish[3], wish[4], wish[5] = 1, 2, 2
	_, err := e.control.Write(record(typeWish, 0, wish))
	die(err)
	for k := uint32(0); k < e.n; k++ {
		_, err := e.out[1+k%(streams-1)].Write(record(typeDatagram, byte(k%4), body(k)))
		die(err)
	}
}

func connection(serve bool, socket net.PacketConn, port int, tlsConf *tls.Config) quic.Connection {
	conf := &quic.Config{MaxIncomingUniStreams: streams, MaxIncomingStreams: -1, MaxIdleTimeout: 20 * time.Second,
		HandshakeIdleTimeout: 20 * time.Second}
	if serve {
		l, err := quic.Listen(socket, tlsConf, conf)
		die(err)
		fmt.Println("ready")
		c, err := l.Accept(context.Background())
		die(err)
		return c
	}
	c, err := quic.Dial(socket, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, tlsConf.ServerName, tlsConf, conf)
	die(err)
	return c
}

func main() {
	serve, dir, cert, name := os.Args[1] == "serve", os.Args[2], os.Args[3], os.Args[4]
	port, err := strconv.Atoi(os.Args[5])
	die(err)
	n, err := strconv.Atoi(os.Args[6])
	die(err)
	loss, err := strconv.Atoi(os.Args[7])
	die(err)
	pair, err := tls.LoadX509KeyPair(dir+"/"+cert+".pem", dir+"/"+cert+".key")
	die(err)
	pem, err := os.ReadFile(dir + "/ca.pem")
	die(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	tlsConf := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ClientCAs: roots, ServerName: name,
		ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"roceway/1"}, MinVersion: tls.VersionTLS13}
	local := 0
	if serve {
		local = port
	}
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: local})
	die(err)
	c := connection(serve, &lossy{PacketConn: socket, dice: rand.New(rand.NewSource(7)), loss: loss}, port, tlsConf)
	e := &end{conn: c, n: uint32(n), open: make(chan struct{}), all: make(chan struct{})}
	for i := 0; i < streams; i++ {
		s, err := c.OpenUniStreamSync(context.Background())
		die(err)
		e.out = append(e.out, s)
	}
	e.control = e.out[0]
	go e.accept()
	if !serve {
		_, err = e.control.Write(hello(true, 0, 0))
		die(err)
	}
	e.sendAll()
	<-e.all
	fmt.Printf("done sent=%d got=%d streams=%d\n", n, e.got, streams)
	<-c.Context().Done() // the other end ends it
}
