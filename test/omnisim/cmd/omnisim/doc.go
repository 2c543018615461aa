// Command omnisim runs the Omni simulator of package omnisim until it is interrupted. It prints the endpoint and writes
// the service-account key and the certificate authority to files: the contents of a Secret for an OmniConnection.
//
//	omnisim --listen 127.0.0.1:8099 --machines 6 --key-out omni.key --ca-out omni-ca.pem
package main
