package apiserver

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

const (
	// certificateLook is how often the serving certificate is examined.
	certificateLook = 30 * time.Second
	// certificateSwap is how long certificate and key may not match, while they are being replaced one after the
	// other.
	certificateSwap = 5 * time.Second
	// certificateTold is how often the log repeats a problem that goes on.
	certificateTold = time.Hour
)

// ServingFiles are the files of the serving certificate. They are read again when they change.
type ServingFiles struct{ Certificate, Key string }

// TellServingCertificate makes the server log which certificate it serves, and what is wrong with it or its files,
// and show its lifetime in metrics.
//
// If the files cannot be used, the library rightly keeps the certificate that it has, but logs no more than "key
// failed". It does not notice at all that a certificate has expired. kube-apiserver notices only when it connects the
// next time, mostly after one of the two was restarted: until then even the APIService is Available. Also, the
// library reads the files again when they are changed or removed, but not when a symbolic link is pointed to other
// files while the old ones stay, as certbot does. So the files are also read every half minute.
func TellServingCertificate(config *genericapiserver.Config, files ServingFiles, register func(metrics.Registerable) error) error {
	begins := metrics.NewGauge(&metrics.GaugeOpts{
		Name: "omni_apiserver_serving_certificate_not_before_timestamp_seconds",
		Help: "From when on the certificate that is served is valid, in seconds since 1970.",
	})
	expires := metrics.NewGauge(&metrics.GaugeOpts{
		Name: "omni_apiserver_serving_certificate_expiration_timestamp_seconds",
		Help: "When the certificate that is served expires, in seconds since 1970.",
	})

	for _, metric := range []metrics.Registerable{begins, expires} {
		if err := register(metric); err != nil {
			return fmt.Errorf("register a metric of the serving certificate: %w", err)
		}
	}

	content := config.SecureServing.Cert
	teller := &certificateTeller{files: files, begins: begins.Set, expires: expires.Set, reload: func(context.Context) error { return nil }, served: func() []byte {
		certificate, _ := content.CurrentCertKeyContent()

		return certificate
	}}

	// A certificate that the library made in memory has no files.
	if fromFiles, ok := content.(dynamiccertificates.ControllerRunner); ok {
		teller.reload = fromFiles.RunOnce
	}

	if err := config.AddPostStartHook("tell-serving-certificate", func(hook genericapiserver.PostStartHookContext) error {
		go teller.run(hook)

		return nil
	}); err != nil {
		return fmt.Errorf("look after the serving certificate: %w", err)
	}

	return nil
}

// certificateTeller remembers what it has logged.
type certificateTeller struct {
	files ServingFiles
	// reload loads the certificate from the files; the error says why it cannot.
	reload func(context.Context) error
	// served is the certificate in use, as PEM.
	served          func() []byte
	begins, expires func(float64)

	serial, problem string
	told            time.Time
}

func (c *certificateTeller) run(ctx context.Context) {
	for {
		c.reloadAndReport(ctx)

		select {
		case <-ctx.Done():
			return
		case <-time.After(certificateLook):
		}
	}
}

// reloadAndReport reads the files and logs what has changed.
func (c *certificateTeller) reloadAndReport(ctx context.Context) {
	unusable := c.reload(ctx)
	if unusable != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(certificateSwap):
			unusable = c.reload(ctx)
		}
	}

	leaf, err := c.leaf()
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read the serving certificate that is in use")

		return
	}

	c.begins(float64(leaf.NotBefore.Unix()))
	c.expires(float64(leaf.NotAfter.Unix()))

	if serial := leaf.SerialNumber.String(); serial != c.serial {
		c.serial = serial

		klog.FromContext(ctx).Info("Serving this certificate", "file", c.files.Certificate, "names", strings.Join(leaf.DNSNames, ","), "validUntil", leaf.NotAfter.Format(time.RFC3339))
	}

	c.tell(klog.FromContext(ctx), certificateProblem(time.Now(), leaf, unusable))
}

func (c *certificateTeller) tell(logger klog.Logger, problem string) {
	changed := problem != c.problem

	switch {
	case problem == "" && changed:
		logger.Info("The serving certificate is in order again", "file", c.files.Certificate)
	case problem != "" && (changed || time.Since(c.told) >= certificateTold):
		c.told = time.Now()

		logger.Error(nil, "The serving certificate: "+problem, "certificate", c.files.Certificate, "key", c.files.Key)
	}

	c.problem = problem
}

// leaf is the certificate in use.
func (c *certificateTeller) leaf() (*x509.Certificate, error) {
	block, _ := pem.Decode(c.served())
	if block == nil {
		return nil, errors.New("it is not in PEM format")
	}

	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse it: %w", err)
	}

	return leaf, nil
}

// certificateProblem describes what is wrong with the certificate in use, or with the files that are to replace it;
// empty if nothing is.
func certificateProblem(now time.Time, leaf *x509.Certificate, unusable error) string {
	const remedy = "; look at the Certificate omni-apiserver-tls and at the log of cert-manager, or replace the files"

	until := leaf.NotAfter.Format(time.RFC3339)

	var problems []string

	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		problems = append(problems, "it expired at "+until+": kube-apiserver accepts it for no new connection. "+
			"Requests are answered over the connection that it has from before, until that one ends: restart neither kube-apiserver nor this server before there is a new certificate")
	case now.Before(leaf.NotBefore):
		problems = append(problems, "it is valid from "+leaf.NotBefore.Format(time.RFC3339)+" only, and here it is "+now.Format(time.RFC3339)+
			": one of the clocks is wrong, and kube-apiserver may not accept it")
	case left < leaf.NotAfter.Sub(leaf.NotBefore)/10:
		problems = append(problems, "it expires at "+until+", and nobody has renewed it")
	}

	if unusable != nil {
		problems = append(problems, "what is in its files now cannot be served ("+unusable.Error()+"), so the one from before is, until "+until)
	}

	if len(problems) == 0 {
		return ""
	}

	return strings.Join(problems, "; ") + remedy
}
